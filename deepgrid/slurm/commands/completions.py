"""The records that our completion hook writes (`remote/hooks/jobcomp.lua`)."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from deepgrid.slurm.commands.job_row import Row
from deepgrid.slurm.commands.job_states import state_of
from deepgrid.slurm.commands.query import number, seconds
from deepgrid.slurm.commands.versions import exit_of


class Completions:
    """Records of the completion hook: `key=value` lines, with an empty line after each record."""

    @staticmethod
    def parse(text: str) -> list[Row]:
        """Return a row per record."""
        rows = []
        for block in text.split("\n\n"):
            field: dict[str, str] = defaultdict(str)
            for line in block.split("\n"):
                key, _, value = line.partition("=")
                field.setdefault(key, value)
            slurm_id, state_number = number(field["job_id"]), number(field["job_state"])
            if slurm_id is None or state_number is None:
                continue
            state = state_of(state_number)
            exit_status, reason = exit_of(field["exit_code"], state)
            started = field["nodes"] not in ("", "nil", "(null)", "None assigned")
            started_at, ended_at = seconds(field["start_time"]) if started else None, seconds(field["end_time"])
            ran = Row(slurm_id, field["user_id"], state, started_at, ended_at, exit_status, reason)
            restarts = number(field["restart_cnt"]) or 0
            nodes = field["nodes"] if started else ""
            rows.append(replace(ran, restarts=restarts, name=field["name"], comment=field["comment"], nodes=nodes))
        return rows
