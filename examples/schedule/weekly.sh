#!/bin/sh
# Once a week: check the last campaign, learn from its log, plan the next one. In a crontab:
#     0 5 * * MON  /srv/largesse/weekly.sh /srv/spring || mail -s "largesse: exit code $?" growth@example.org < /srv/spring/weekly.log
# The folder holds campaign.toml, the run folder `current` of the last plan, and its log `new-log.parquet`.
# Exit codes of largesse: 0 fine, 10 careful, 20 no; 2 is an error. Careful goes on; no and errors stop before a plan is written.
set -u
cd "$1" || exit 2
exec > weekly.log 2>&1

step() {
    largesse "$@"
    code=$?
    if [ "$code" -ne 0 ] && [ "$code" -ne 10 ]; then
        echo "largesse $1 ended with exit code $code: no new plan"
        exit "$code"
    fi
}

if [ -d current ]; then
    step check current new-log.parquet --out check.html --quiet
fi
step doctor campaign.toml --quiet
step run campaign.toml --out next --quiet
step plan next --out plan.csv --quiet
rm -rf previous
if [ -d current ]; then mv current previous; fi
mv next current
