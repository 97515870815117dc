"""Random text makes no parser of Slurm's answers or of strangers' requests crash, and forges no row."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from deepgrid.errors import GridError
from deepgrid.lifecycle.job import JobKey
from deepgrid.slurm.commands.complaints import is_outage, the_complaint
from deepgrid.slurm.commands.completions import Completions
from deepgrid.slurm.commands.query import limit_minutes
from deepgrid.slurm.commands.sacct import Sacct
from deepgrid.slurm.commands.scontrol import Scontrol, gpus_of
from deepgrid.slurm.commands.squeue import Squeue
from deepgrid.slurm.commands.step_uses import SacctUse, Sstat
from deepgrid.slurm.observe.holdings import parse_ledger
from deepgrid.slurm.observe.snapshot import parse_snapshot
from deepgrid.slurm.ssh.channel import CommandResult
from deepgrid.slurm.submit.protocol import parse_answer
from tests.attacks.loop_watch import LONGEST_STEP_S, without_old_garbage
from tests.attacks.random_text import LINE_ENDS, Mutations, Texts
from tests.attacks.wire_parsers import PIECES, WIRE_PARSERS

KEY = JobKey(31337, "0x" + "c0ffee00" * 5, 5, 1000)
CASES = 600
MUTATIONS, MUTATIONS_OF_A_NIGHT = 400, 100_000

OF_SLURM = pytest.mark.attack(
    "Slurm's answers contain random text",
    attacker="another user of the cluster",
    gain="nothing: invalid text is left out or raises a defined error",
    defence="parsers accept whole lines, digits as ids, and the first value of a field",
)


def answer(text: str) -> CommandResult:
    return CommandResult(0, text.encode(errors="surrogateescape"), b"")


PARSERS: dict[str, Callable[[str], object]] = {
    "squeue": Squeue.parse,
    "sacct": Sacct.parse,
    "sacct, use": SacctUse.parse,
    "sstat": Sstat.parse,
    "records": Completions.parse,
    "scontrol": lambda text: (found := Scontrol("main").parse(text), found.usable, found.why_not()),
    "GPUs": gpus_of,
    "time limit": limit_minutes,
    "complaint": lambda text: (the_complaint(text), is_outage(text)),
    "folder": KEY.of_same_grid,
    "look": lambda text: parse_snapshot(answer(text)),
    "ledger": lambda text: parse_ledger(answer(text)),
    "protocol": lambda text: parse_answer(answer(text)),
}


def texts(seed: int) -> Texts:
    return Texts(seed, [(KEY, 42, 999)], "intruder")


def columns(some: Texts, separators: str) -> str:
    """Random text in as many columns as a command prints, with the end mark of the scripts."""
    line = "".join(some.text(60) + some.rng.choice(separators) for _ in range(some.rng.randrange(12)))
    return some.rng.choice((line, f"42|999|{line}", f"clock {line}", f"held {line}", f"queue 0 {line}")) + "\nend\n"


@OF_SLURM
@pytest.mark.parametrize("parser", PARSERS)
def test_a_parser_survives_every_text(parser: str) -> None:
    some = texts(len(parser))
    for _ in range(CASES):
        text = some.rng.choice((some.text(), columns(some, "|"), columns(some, " ="), columns(some, "\n ")))
        with suppress(GridError):
            PARSERS[parser](text)


@OF_SLURM
@pytest.mark.parametrize("number", ["inf", "1e999", "-1", "nan", "²", "١٢", "9" * 5000, "1e18", "0x10", ""])
def test_an_invalid_number_crashes_no_parser(number: str) -> None:
    rows = Squeue.parse(f"42|999|RUNNING|{number}|{number}|{number}|{number}:00|{number}|{number}|n1|None|")
    assert [row.slurm_id for row in rows] == [42]
    assert len(Sacct.parse(f"42|999|FAILED|{number}:{number}|{number}|{number}|{number}|n1")) == 1
    assert len(Completions.parse(f"job_id=42\njob_state=3\nexit_code={number}\nend_time={number}\nnodes=n1\n")) == 1
    node = f"NodeName=n{number} CPUEfctv={number} RealMemory={number} MemSpecLimit={number} Gres=gpu:{number}"
    found = Scontrol("main").parse(f"MaxMemPerCPU = {number}\n{node} Partitions=main State=IDLE TotalNodes={number}")
    assert found.all.nodes <= 1
    for line in (f"clock {number}", f"held {number}", f"job {KEY.comment} {number} {number} submitted {number} f"):
        assert parse_snapshot(answer(f"{line}\nqueue 0 \nend\n")).ids.keys() <= {KEY.comment}


@OF_SLURM
def test_text_in_a_completion_record_forges_no_field() -> None:
    """The hook writes one value per line. Other characters that Python treats as line ends must not separate fields."""
    some = texts(1)
    controls = dict.fromkeys((*range(32), 127), " ")
    for number in range(CASES):
        name, comment = (some.text().translate(controls) for _ in range(2))
        record = (
            f"job_id={number}\nname={name}\nuser_id=7\njob_state=3\nexit_code=0\nstart_time=10\nend_time=20\nnodes=n2\n"
            f"restart_cnt=0\ncomment=deepgrid:{comment}\n\n"
        )
        (row,) = Completions.parse(record)
        assert (row.slurm_id, row.user, row.state, row.started_at, row.ended_at) == (number, "7", "COMPLETED", 10, 20)
        assert (row.name, row.comment) == (name, f"deepgrid:{comment}")


@OF_SLURM
@pytest.mark.parametrize("end", [end for end in LINE_ENDS if "\n" not in end], ids=ascii)
def test_only_a_line_feed_ends_a_line(end: str) -> None:
    """The shell knows no other end of a line. A parser that does would find forged lines."""
    word = f"submitted{end}cancelled"
    with pytest.raises(GridError):
        parse_answer(answer(f"{word}\n"))
    with pytest.raises(GridError):
        parse_snapshot(answer(f"queue 0 {end}end"))


@pytest.mark.parametrize("count", [MUTATIONS, pytest.param(MUTATIONS_OF_A_NIGHT, marks=[pytest.mark.deep])])
@pytest.mark.parametrize("name", WIRE_PARSERS)
@pytest.mark.attack(
    "requests, documents, workflow files and templates with random changes", attacker="a stranger with HTTP",
    gain="nothing: each is read, or refused with a sentence",
    defence="parsers raise their documented errors only, and take less than 100 ms where the event loop waits for them",
)  # fmt: skip
def test_a_parser_of_requests_survives_every_change(name: str, count: int) -> None:
    parser, some = WIRE_PARSERS[name], Mutations(len(name), PIECES)
    for valid in parser.valid:
        parser.parse(valid)
    read = 0
    with without_old_garbage():
        for _ in range(count):
            text = some.of(some.rng.choice(parser.valid))
            began = time.thread_time()
            try:
                parser.parse(text)
                read += 1
            except parser.refusals:
                pass
            except Exception as error:
                pytest.fail(f"{type(error).__name__} for {text!r}")
            if parser.in_loop:
                assert time.thread_time() - began < LONGEST_STEP_S, text
    assert 0 < read <= count, "some changes leave a text valid"
