"""The table of all rounds, and the command that repeats a failed round."""

from __future__ import annotations

import json
import shlex
from collections import Counter

from tests.chaos.__main__ import parse, rounds
from tests.chaos.fault import all_faults
from tests.chaos.round import command
from tests.chaos.table import Row, Table

ROWS = [
    Row("sshd down", Counter({"finished": 3, "failed": 1}), 2.0, 0),
    Row("node's power cut", Counter({"finished": 2}), 5.0, 1),
    Row("sshd down", Counter({"cancelled": 2}), 4.0, 0),
]


def test_rows_from_test_reports_add_up() -> None:
    rows = [Row.from_report(json.loads(json.dumps(row.to_report()))) for row in ROWS]
    assert rows == ROWS
    lines = [line.split("  ") for line in Table(rows).text().splitlines()]
    cells = [[cell.strip() for cell in line if cell.strip()] for line in lines]
    assert cells[1:] == [
        ["sshd down", "2", "6", "2", "3", "1", "3.0", "right"],
        ["node's power cut", "1", "2", "2", "5.0", "1 wrong"],
        ["all", "3", "8", "2", "5", "1", "3.7", "1 wrong"],
    ]


def test_the_command_repeats_the_round() -> None:
    faults = list(all_faults().values())[::9]
    for jobs, long in ((2, False), (6, True)):
        words = shlex.split(command(faults, 7, jobs, long=long))
        assert words[1:3] == ["-m", "tests.chaos"]
        options = parse(words[3:])
        assert (options.seed, options.jobs, options.long, options.times) == (7, jobs, long, 1)
        assert rounds(options, all_faults()) == [faults]
