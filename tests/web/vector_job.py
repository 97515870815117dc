"""Vectors of the page of a job: bills, lines of logs and reasons of clusters."""

from __future__ import annotations

import itertools
import random
from typing import Any

from deepgrid.billing.formulas import affordable_minutes, bill, rate_wei_per_minute
from deepgrid.client.display.text import COLOUR, LogLines
from deepgrid.lifecycle.job import Affinity, Hardware, JobDefinition, Label, Prices
from deepgrid.lifecycle.minutes import minutes_begun
from deepgrid.scheduling.fit import misfit, unmet
from tests.tui.hostile_texts import PAYLOADS

CREDIT = 10**18
AMOUNTS = (0, 1, 2, 99, 3 * CREDIT + 1, 100 * CREDIT, 2**96 - 1)
LINES = (
    "plain", "\x1b[31mred\x1b[0m and \x1b[1;32mgreen", "a\rb", "a\r\nb\n", "tab\there", "\x1b[2K\x1b[1Gprogress",
    "title \x1b]0;owned\x07 end", "cut \x1b[", "\x1b", "nul\0byte", "🙂 é ü", "\u202egnp.exe", "bare \x9b31m",
)  # fmt: skip


def bills() -> dict[str, Any]:
    """Return divisions of deposits, and rates."""
    chosen = random.Random(4)
    cases = []
    for minutes, rate, cut in itertools.product((0, 1, 59, 525_601), AMOUNTS, (0, 3, 100)):
        locked = chosen.choice(AMOUNTS)
        parts = bill(minutes, rate, locked, cut)
        cases.append({
            "minutes": minutes, "rate": str(rate), "locked": str(locked), "cut_percent": cut,
            "affordable": affordable_minutes(locked, rate), "cost": str(parts.cost), "paid": str(parts.paid),
            "cut": str(parts.cut), "refunded": str(parts.refunded),
        })  # fmt: skip
    prices = Prices(7 * CREDIT // 3, CREDIT // 7, CREDIT // 1_000_003)
    rates = []
    for shape in ((1, 1, 0, 0), (4, 8, 2048, 3), (64, 64, 7919, 17)):
        rate = rate_wei_per_minute(JobDefinition(shape[3], shape[2], shape[1], shape[0], ""), prices)
        rates.append({"shape": shape, "rate": str(rate)})
    seconds = [[seconds, minutes_begun(seconds)] for seconds in (0, 1, 59, 60, 61, 3600, 3601)]
    names = ("gpu_wei_per_minute", "cpu_wei_per_minute", "mem_wei_per_mb_minute")
    return {"bills": cases, "prices": [str(getattr(prices, name)) for name in names], "rates": rates, "begun": seconds}


def log_lines() -> dict[str, Any]:
    """Return the output without colours, as the cleaner returns it."""
    lines = {text: LogLines().feed(text.encode(), final=True) for text in (*LINES, *PAYLOADS.values())}
    return {"lines": [[text, [COLOUR.sub("", line) for line in found]] for text, found in lines.items()]}


def reasons() -> dict[str, Any]:
    """Return why hardware and labels do not fit."""
    hardware = Hardware((2, 0), (8, 16), (8000, 64_000))
    shapes = (
        (0, 100, 1, 1),
        (0, 100, 1, 25),
        (3, 1, 1, 1),
        (0, 9000, 4, 4),
        (0, 100, 12, 2),
        (2, 7000, 2, 1),
        (0, 1, 0, 1),
    )
    labels = (Label("os", "linux"), Label("cpu", "9"), Label("cpu", "12.5"), Label("arch", "amd64"))
    wanted = [Affinity(key, op, value) for key, value in (("os", "lin"), ("cpu", "10"), ("none", "1"), ("arch", "b"))
              for op in ("<", "<=", "==", ">=", ">", "!=", "in")]  # fmt: skip
    return {
        "hardware": [hardware.gpus_per_node, hardware.cpus_per_node, hardware.mem_per_node_mb],
        "misfits": [[shape, misfit(JobDefinition(*shape, ""), hardware)] for shape in shapes],
        "labels": [[label.key, label.value] for label in labels],
        "unmet": [[[one.key, one.op, one.value], unmet(labels, (), (one,))] for one in wanted],
    }
