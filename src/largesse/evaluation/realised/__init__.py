"""After a campaign: what was promised against what came, whether the plan was followed, and what has changed since."""
