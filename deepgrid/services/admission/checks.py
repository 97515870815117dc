"""Checks uploaded definitions within a cost limit, in a fair queue, once per definition and script.

bash checks the grammar of each script. shellcheck would take a quarter of a second for each, so it checks the two parts
of a script separately, and each only once: the preamble is the same for most jobs, and the steps are short. It does not
look into commands and values of variables, because they are single words in quotes. So it gets the same text for all.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from deepgrid.errors import InputError, ServiceError
from deepgrid.sbatch import Containers, ScriptParts, StoragePaths, render, render_parts
from deepgrid.services.admission.fair_queue import FairQueue
from deepgrid.services.refusal import Refusal
from deepgrid.services.script_check import check_grammar, lint_script
from deepgrid.workflow import from_canonical, without_texts

MOST_VERDICTS = 2000
MAX_GENERATED_BYTES = 256 * 1024  # shellcheck takes about 4 s for them; its time grows with their square
SMALL_DEFINITION_BYTES = 4 * 1024
RETRY_AFTER_S = 5  # when the machine was too busy for a check
LARGE_NICENESS = 3
ACROSS_PARTS = ("SC2034", "SC2154")  # one part sets variables that the other reads
NUMBERS = re.compile(r"^export ([A-Z_]+)=[0-9]+$", re.MULTILINE)

Record = Callable[[float], None]


def linted_parts(script: ScriptParts) -> tuple[str, str]:
    """Return the texts that shellcheck gets for a script: its parts, with the same number in place of each resource."""
    return NUMBERS.sub(r"export \1=1", script.preamble), script.steps


@dataclass(frozen=True, slots=True)
class Verdict:
    """Result of a check: whether the definition ships output, and its fault, if any."""

    enable_logging: bool = False
    fault: str = ""


class ScriptChecks:
    """Checks definitions in a `FairQueue` of uploaders, and caches the verdicts.

    `slots` run at once, and `waiting` of an uploader wait for `wait_s` at most. `niceness` lowers the priority of all.
    `checked` gets the seconds of each check.
    """

    def __init__(
        self, slots: int, waiting: int, wait_s: float, *, niceness: int = 0, checked: Record = lambda _: None
    ) -> None:
        self.queue = FairQueue(slots, waiting, wait_s)
        self._threads = ThreadPoolExecutor(slots, "check")
        self._niceness = niceness
        self._checked = checked
        self._verdicts: OrderedDict[bytes, Verdict] = OrderedDict()

    async def check(self, uploader: str, content: bytes) -> Verdict:
        """Check a definition in canonical form, and return its verdict.

        Raises InputError for a fault. Refuses with 429 while too many checks of this uploader wait, and with 503 when
        the checkers do not answer in time. Both refusals ask for a retry.
        """
        key = hashlib.sha256(content).digest()
        verdict = self._verdicts.get(key) or await self._in_turn(uploader, key, content)
        if verdict.fault:
            raise InputError(verdict.fault)
        return verdict

    async def _in_turn(self, uploader: str, key: bytes, content: bytes) -> Verdict:
        large = len(content) > SMALL_DEFINITION_BYTES
        async with self.queue.turn(uploader, large=large):
            if key not in self._verdicts:
                loop, began = asyncio.get_running_loop(), time.monotonic()
                try:
                    self._remember(key, await loop.run_in_executor(self._threads, self._examine, content, large))
                except ServiceError as error:
                    raise Refusal(503, error.message, retry_after_s=RETRY_AFTER_S) from None
                finally:
                    self._checked(time.monotonic() - began)
            return self._verdicts[key]

    def _examine(self, content: bytes, large: bool) -> Verdict:
        niceness = max(self._niceness, LARGE_NICENESS if large else 0)
        try:
            job = from_canonical(content)
            common = without_texts(job)
            # one script for each way of running containers; they are equal if the job has none
            ways = (Containers(), Containers(pyxis=True))
            scripts = {render(job, StoragePaths(), way): render_parts(common, StoragePaths(), way) for way in ways}
        except InputError as error:
            return Verdict(fault=error.message)
        for script in sorted(scripts, key=len):
            if fault := self._fault_of(script, scripts[script], len(script.encode()) - len(content), niceness):
                return Verdict(fault=fault)
        return Verdict(job.enable_logging)

    def _fault_of(self, script: str, common: ScriptParts, generated_bytes: int, niceness: int) -> str:
        """Return the fault of a script, if any.

        `common` is the script without commands and values of variables. `generated_bytes` counts those that are not
        the definition's own text.
        """
        if generated_bytes > MAX_GENERATED_BYTES:
            return (
                f"the steps become more than {MAX_GENERATED_BYTES // 1024} KiB of batch script: use fewer steps, or"
                " do more in each"
            )
        try:
            check_grammar(script, niceness=niceness)
        except InputError as error:
            return error.message
        return next(filter(None, (self._lint(part, niceness) for part in linted_parts(common))), "")

    def _lint(self, part: str, niceness: int) -> str:
        """Return shellcheck's output on a part of a script. It is run once."""
        key = hashlib.sha256(b"script" + part.encode()).digest()
        if key not in self._verdicts:
            try:
                lint_script(part, without=ACROSS_PARTS, niceness=niceness)
                self._remember(key, Verdict())
            except InputError as error:
                self._remember(key, Verdict(fault=error.message))
        return self._verdicts[key].fault

    def _remember(self, key: bytes, verdict: Verdict) -> None:
        self._verdicts[key] = verdict
        while len(self._verdicts) > MOST_VERDICTS:
            self._verdicts.popitem(last=False)
