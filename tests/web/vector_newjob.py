"""Vectors of the page for new jobs: canonical forms, conditions on labels, quotes."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

from deepgrid.billing.formulas import affordable_minutes, rate_wei_per_minute
from deepgrid.client.order import parse_affinity, parse_use
from deepgrid.errors import InputError
from deepgrid.lifecycle.job import Affinity, Hardware, JobDefinition, Label, Prices, Provider
from deepgrid.scheduling.fit import LabelValue, compare, misfit, mismatch
from deepgrid.workflow import canonical, parse
from deepgrid.workflow.needs import needs_of

EXAMPLES = Path(__file__).parents[2] / "examples"
HEAD = "resources: {tasks: 2, cpusPerTask: 1, memPerCpu: 128, gpus: 0}\n"
ODD_FILES = [
    HEAD + "steps: []\n",
    HEAD
    + "enableLogging: false\nenv:\nsteps:\n- name: 010\n  if: true\n  run: {command: 1.50, shell: /bin/sh, dns: []}\n",
    HEAD + 'steps:\n- {name: "é\U0001f642\\u0001\\n", run: {command: "", resources: {}, mapUid: 0}}\n',
    HEAD + "inputMode: 0755\ninput: {http: {url: 'http://127.0.0.1/a'}}\nsteps: []\n",
    "x-one: &one {tasks: 2, cpusPerTask: 1}\nresources: {<<: *one, memPerCpu: 64, gpus: 0}\nsteps: []\n",
    HEAD + "steps:\n- for: {parallel: false, items: [], steps: []}\n- launch: {signalOnParentStepExit: 0, steps: []}\n",
    HEAD + "steps:\n- run:\n    command: >-\n      a\n      b\n\n      c\n    network: host\n    dns: [1.1.1.1]\n",
    HEAD + "steps:\n- run:\n    command: |+\n      keep\n\n    env: [{key: A, value: null }, {key: B, value: 'x'}]\n",
    "resources: {tasks: 1, cpusPerTask: 1, memPerCpu: 4G, gpus: 0}\nsteps: []\n",
    "resources: {tasks: 1, cpusPerTask: 1, memPerCpu: '1.5 GiB', gpus: 0}\nsteps: []\n",
    "resources: {tasks: 1, cpusPerTask: 1, memPerCpu: 100mb, gpus: 0}\nsteps: []\n",
    HEAD
    + "steps:\n- run: {command: a, container: {image: a, apptainer: true}}\n- run: {command: a, container: {image: b}}"
    + "\n",
    HEAD
    + "steps:\n- catch: [{run: {command: a, network: slirp4netns}}]\n"
    + "  finally: [{run: {command: a, container: {image: b}}}]\n",
    HEAD
    + f"output: {{grid: {{}}}}\nprivateFiles: {{own: '00', clusters: [{{cluster: '0x{'a' * 40}', key: 'ab'}}]}}\n"
    + "steps: []\n",
    HEAD + "continuousOutputSync: True\nsteps:\n- finally: []\n  catch: [{name: yes}]\n  name: 1e3\n",
]
NUMBERS = ["1", "1.0", "01", "-1", "1e3", "1000", "0", "-0", ".5", "10", "1e-400"]
VALUES = [*NUMBERS, "abc", "a\U0001f642", "a\uffff", "1_0", " 1", "", "NaN", "inf"]
OPERATORS = ["<", "<=", "==", "=", ">=", ">", "!=", "in", ":in:", "?"]
WRITTEN = [
    "os=linux",
    "os = linux",
    "=x",
    "x=",
    "a=b=c",
    "mem>=4000",
    "gpu:in:nvidia",
    "zone!=north",
    "a<b",
    "a>b",
    "a",
    "a:b=c",
    " =x",
    "a==b",
    "a<=",
    "cpu>=1>2",
    "mem>=4GB",
    "mem==4GB",
    "date>=2026-01-01",
    "mem<4 TiB",
    "share>50%",
]


def canonical_forms() -> list[dict[str, Any]]:
    """Return the accepted ones of the examples without modules and of the odd files, with canonical form and needs."""
    texts = [path.read_text() for path in sorted(EXAMPLES.glob("*.yaml"))]
    found = []
    for text in (*(one for one in texts if "use:" not in one), *ODD_FILES):
        try:
            model = parse(text, "file").model
        except InputError:
            continue
        needs = [[need.key, need.op, need.value] for need in needs_of(model)]
        found.append({"file": text, "canonical": canonical(model).decode(), "needs": needs})
    return found


def labels() -> dict[str, Any]:
    """Return the operators that hold between two values, for all pairs, and conditions as they are read."""
    pairs = product(VALUES, VALUES)
    return {
        "operators": OPERATORS,
        "compared": [
            [a, b, [op for op in OPERATORS if compare(LabelValue.parse(a), op, LabelValue.parse(b))]] for a, b in pairs
        ],
        "uses": [[text, _read(parse_use, text)] for text in WRITTEN],
        "affinities": [[text, _read(parse_affinity, text)] for text in WRITTEN],
    }


def quotes() -> list[dict[str, Any]]:
    """Return jobs and clusters, with the rate, the minutes and what is missing."""
    shapes = [
        (1, 1, 128, 0),
        (4, 8, 1000, 2),
        (3, 5, 4000, 0),
        (1000, 100, 128, 0),
        (2, 1, 0, 9),
        (0, 1, 1, 0),
        (1, 2, 1, 4),
    ]
    nodes = [([8], [16000], [0]), ([8, 16], [16000, 64000], [0, 4]), ([128] * 4, [512000] * 4, [8, 8, 0, 0])]
    labels, wanted = (
        (Label("name", "gauss"), Label("zone", "north"), Label("mem", "64"), Label("gpu.a100", "2")),
        (Affinity("mem", ">=", "100"),),
    )
    a100 = (Affinity("gpu.a100", ">=", "1"),)
    prices, found = Prices(10**18 + 7, 10**15, 3), []
    for (tasks, cpus, mem, gpus), (per_cpu, per_mem, per_gpu), affinity in product(shapes, nodes, ((), wanted, a100)):
        job = JobDefinition(gpus, mem, cpus, tasks, "", affinity=affinity)
        hardware = Hardware(tuple(per_gpu), tuple(per_cpu), tuple(per_mem))
        provider = Provider("0x" + "11" * 20, hardware, prices, labels, approved=True, banned=False)
        rate = rate_wei_per_minute(job, prices)
        found.append({
            "shape": [tasks, cpus, mem, gpus], "cpus": per_cpu, "memory": per_mem, "gpus": per_gpu,
            "prices": [
                str(prices.gpu_wei_per_minute), str(prices.cpu_wei_per_minute), str(prices.mem_wei_per_mb_minute),
            ],
            "labels": [[one.key, one.value] for one in labels],
            "affinities": [[a.key, a.op, a.value] for a in affinity],
            "rate": str(rate), "minutes": str(affordable_minutes(100 * 10**18, rate)), "misfit": misfit(job, hardware),
            "mismatch": mismatch(provider.labels, (), affinity, gpus),
        })  # fmt: skip
    return found


def newjob() -> dict[str, Any]:
    """Return all vectors of a new job."""
    return {"canonical": canonical_forms(), "labels": labels(), "quotes": quotes()}


def _read(parser: Any, text: str) -> list[str] | None:
    try:
        found = parser(text)
    except InputError:
        return None
    return [found.key, found.value] if isinstance(found, Label) else [found.key, found.op, found.value]
