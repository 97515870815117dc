"""`run_step` runs a step of a role as a Prefect task. The other modules hold the steps that use Prefect themselves."""
