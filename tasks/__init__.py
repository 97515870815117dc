"""`run_step` makes a step of a role a task. The other modules have the steps that use Prefect themselves."""
