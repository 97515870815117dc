"""Strangers put control sequences into texts that `dps` and the supervisor print."""

from __future__ import annotations

import io
import json
import logging
import re
import subprocess
import sys
import unicodedata
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console
from rich.text import Text

from deepgrid.chain.history import Transition
from deepgrid.cli.display.job_display import show_jobs, show_record
from deepgrid.cli.display.screen import Screen, show_findings
from deepgrid.cli.error_boundary import complaint
from deepgrid.client.display.record import JobRecord, record_as_json
from deepgrid.client.display.text import LogLines
from deepgrid.client.job_values import LogLine, Remark, datetime_of
from deepgrid.errors import GridError, SlurmError
from deepgrid.findings import Finding, Level
from deepgrid.lifecycle.job import Affinity, Label
from deepgrid.lifecycle.states import JobStatus
from deepgrid.slurm.ssh.channel import CommandResult
from deepgrid.slurm.submit.protocol import parse_answer
from tests.attacks.claims import SMALL_JOB, Books

SEQUENCES = [
    "\x1b[2J\x1b[H", "\x1b]0;title\x07", "\x1b]52;c;cm0gLXJmIH4K\x07", "\x1b]8;;http://evil.example\x1b\\link",
    "\x1bP+q544e\x1b\\", "\x1b_app\x1b\\", "\x1bc", "\x1b[?1049h", "\x1b[6n", "\x1b[3;1H\x1b[K", "\x9b2J", "\x90q\x9c",
    "\x9d0;title\x07", "\x85", "a\x08\x08b", "100%\rpaid 0", "\x0b\x0c", "\x00", "\x7f", "txt\u202egpj",
    "\u2066x\u2069", "\u2028", "\ud800",
]  # fmt: skip
HOSTILE = "harmless ".join(SEQUENCES)
COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
DEFENCE = "control characters become spaces in printed text and in errors"


def harmless(text: str) -> bool:
    """Return whether a text has no control characters except colours, line ends and tabs."""
    left = COLOUR.sub("", text)
    return not any(unicodedata.category(c) in ("Cc", "Zl", "Zp") and c not in "\n\t" for c in left) and not (
        {*"\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"} & {*left}
    )


@pytest.fixture
def screen() -> Screen:
    """A screen that behaves as on a terminal."""
    screen = Screen()
    screen.console.file = io.StringIO()
    screen.console._force_terminal = True
    return screen


def shown(screen: Screen) -> str:
    assert isinstance(screen.console.file, io.StringIO)
    return screen.console.file.getvalue()


def hostile_record() -> JobRecord:
    definition = replace(
        SMALL_JOB, uses=(Label(HOSTILE, HOSTILE),), affinity=(Affinity(HOSTILE, "==", HOSTILE),)
    )  # fmt: skip
    books = Books()
    claimed = books.outcome(books.claim("0x1", "a script", 1))
    job = replace(
        claimed, status=JobStatus.FAILED, name=HOSTILE, last_error=HOSTILE, provider="0x2", definition=definition
    )  # fmt: skip
    remark = Remark(datetime_of(1), "waiting", HOSTILE, "0x2")  # from a service without checks
    history = (Transition(None, JobStatus.PENDING, 1, 1, HOSTILE),)
    return JobRecord(job, HOSTILE, history, None, (remark,), 2)


@pytest.mark.attack(
    "control sequences in names, labels, conditions, errors, notices and names of clusters",
    attacker="a stranger on chain", gain="spaces on the screen", defence=DEFENCE,
)  # fmt: skip
def test_texts_of_a_job_are_harmless(screen: Screen) -> None:
    record = hostile_record()
    show_record(screen, record)
    show_jobs(screen, [(record.job, HOSTILE)])
    assert harmless(shown(screen))
    assert "harmless" in shown(screen)


@pytest.mark.attack(
    "control sequences in JSON output, which may be shown on a terminal",
    attacker="a stranger on chain", gain="escaped text", defence="JSON is ASCII",
)  # fmt: skip
def test_json_is_ascii() -> None:
    assert json.dumps(record_as_json(hostile_record()), indent=2).isascii()


def show(screen: Screen, lines: list[str]) -> None:
    for line in lines:
        screen.output(LogLine(datetime.now(UTC), line))


@pytest.mark.attack(
    "control sequences in the output of a job, split anywhere",
    attacker="a job's account", gain="colours, which end with their line",
    defence="only colours and bold letters pass, no other escape sequences",
)  # fmt: skip
@pytest.mark.parametrize("cut", [1, 2, 3, 7, 1000])
def test_output_of_a_job_is_harmless(screen: Screen, cut: int) -> None:
    text = ("\n".join(SEQUENCES) + "\x1b[1;31mred").encode("utf-8", "surrogatepass") + b"\x1b[31"
    lines = LogLines()
    for start in range(0, len(text), cut):
        show(screen, lines.feed(text[start : start + cut]))
    show(screen, lines.feed(b"", final=True))
    assert harmless(shown(screen))
    assert shown(screen).rstrip("\n").endswith("\x1b[0m")


@pytest.mark.attack(
    "text without a contrast in the output of a job: concealed, black on black, in colours of equal value",
    attacker="a job's account", gain="nothing: the text is shown in the terminal's own colours",
    defence="`dps` and the terminal app rewrite each colour, and leave out those that hide text; the web app has no "
    "backgrounds, and six colours of its own",
)  # fmt: skip
@pytest.mark.parametrize(
    "codes",
    [
        "8", "1;8", "30;40", "40;30", "97;107", "30", "107", "38;5;16", "38;5;9;48;5;9", "38;5;16;40", "38:5:232;40",
        "38;2;1;2;3;48;2;2;3;4", "38:2::9:9:9;48;5;0", "1;30;100", "31;48;2;205;0;9", "38;2;250;250;250",
    ],
)  # fmt: skip
def test_output_of_a_job_hides_no_text(screen: Screen, codes: str) -> None:
    lines = LogLines().feed(f"seen \x1b[{codes}mhidden\n".encode(), final=True)
    show(screen, lines)
    assert COLOUR.sub("", shown(screen)).endswith("seen hidden\n")
    assert set(COLOUR.findall(shown(screen))) <= {"\x1b[1m", "\x1b[0m"}
    styles = {str(one.style) for one in Text.from_ansi(lines[0]).render(Console()) if one.text.strip()}
    assert styles <= {"None", "none", "bold"}, "the terminal app shows it, too"


@pytest.mark.attack(
    "control sequences in Slurm's error messages, for a supervisor's log and the doctor",
    attacker="a job's account", gain="spaces in a log", defence=DEFENCE,
)  # fmt: skip
def test_errors_and_logs_are_harmless(screen: Screen, caplog: pytest.LogCaptureFixture) -> None:
    said = HOSTILE.replace("\ud800", "").replace("\x85", "").replace("\r", "").encode()
    said = re.sub(rb"[\n\x0b\x0c]|\xe2\x80\xa8", b"", said)
    with pytest.raises(SlurmError) as refusal:
        parse_answer(CommandResult(0, b"refused sbatch: " + said + b"\n", b""))
    with caplog.at_level(logging.WARNING):
        logging.getLogger("deepgrid").warning("job 1: its log is delayed: %s", refusal.value.message)
    show_findings(screen, [Finding.of("slurm", refusal.value), Finding(HOSTILE, Level.BAD, HOSTILE, HOSTILE)])
    told = [caplog.text, str(refusal.value), *complaint(refusal.value), *complaint(GridError(HOSTILE)), shown(screen)]
    assert all(harmless(one) for one in told)
    assert "harmless" in caplog.text


@pytest.mark.attack(
    "a workflow file for readers who use `dps validate` and `dps render`",
    attacker="the author of a file or module", gain="escaped text", defence="scripts contain no control characters",
)  # fmt: skip
@pytest.mark.parametrize("verb", ["validate", "render"])
def test_a_workflow_file_is_harmless(tmp_path: Path, verb: str) -> None:
    text = "".join(one for one in SEQUENCES if "\0" not in one and "\ud800" not in one)
    step = {"name": text, "run": {"command": text, "env": [{"key": "A", "value": text}], "workDir": f"/{text}"}}
    resources = {"tasks": 1, "cpusPerTask": 1, "memPerCpu": 1, "gpus": 0}
    file = tmp_path / "job.yaml"
    more = {text: 1} if verb == "validate" else {}  # an unknown field, which the error quotes
    file.write_text(json.dumps({"resources": resources, "steps": [step], **more}))
    dps = Path(sys.executable).with_name("dps")
    done = subprocess.run([dps, verb, file], capture_output=True, check=False, timeout=60)
    assert done.returncode == (2 if more else 0), done.stderr
    assert harmless((done.stdout + done.stderr).decode())
