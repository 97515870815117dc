"""Slurm's commands: one class each, which builds the command line and parses the output. No I/O.

A class that asks Slurm a question is a `Query`: `squeue`, `sacct`, `scontrol`. `sbatch` builds the options of a
submission, and `completions` parses the records of the completion hook. `versions` has all differences between versions
of Slurm.

Parsers never fail on unknown text. They drop a row that lacks columns, and they keep an unknown state as it is; its
phase is UNKNOWN. All times are unix seconds (`SLURM_TIME_FORMAT=%s`).
"""
