"""The grid's mechanics, free of Prefect: what a job is, what it costs, where it runs, who may see it."""
