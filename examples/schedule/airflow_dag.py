"""A weekly DAG of Airflow: check the last campaign, learn from its log, plan the next one.

Exit codes of largesse: 0 fine, 10 careful, 20 no; 2 is an error. *Careful* goes on, *no* skips the tasks that follow, and an
error fails the task.
"""

from datetime import UTC, datetime

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

STEPS = {
    "check": "largesse check current new-log.parquet --out check.html",
    "doctor": "largesse doctor campaign.toml",
    "run": "largesse run campaign.toml --out next",
    "plan": "largesse plan next --out plan.csv",
}

with DAG("largesse_weekly", schedule="0 5 * * MON", start_date=datetime(2027, 1, 4, tzinfo=UTC), catchup=False):
    previous = None
    for name, command in STEPS.items():
        task = BashOperator(
            task_id=name,
            bash_command=f"{command}; code=$?; [ $code -eq 10 ] && exit 0; exit $code",
            cwd="/srv/spring",
            skip_on_exit_code=20,
        )
        if previous is not None:
            previous >> task
        previous = task
