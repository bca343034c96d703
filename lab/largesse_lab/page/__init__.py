"""The page of results, written from summaries alone: `compare` judges, `tables` and `words` write, `sections` arranges, `page` joins."""
