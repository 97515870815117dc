"""Texts that a Slurm user could choose: every byte but NUL, shell code, options, and forged rows of claims.

A seed always gives the same texts. A text is a `str` with surrogate escapes, as for file names, to keep each byte.
"""

from __future__ import annotations

import base64
import random
from collections.abc import Sequence

from deepgrid.lifecycle.job import JobKey

# Characters that Python, awk, a shell or a terminal may treat as the end of a line.
LINE_ENDS = ("\n", "\n\n", "\r\n", "\r", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029")
OPTIONS = (
    "-u root", "--user=root", "--me", "--uid=0", "-rf /", "--", "-", "-t all", "%A %k", "0", "00042", "1e9", "inf", "²",
    "١٢", "42_7", "42+0", "42.batch", "[1-9]", "*", "~root", "(null)", "N/A", "None assigned", "Unknown", "end", "{}",
)  # fmt: skip


class Texts:
    """Random texts of one seed. They forge rows of `claims` (claim, Slurm id, user id) and try to run `program`."""

    def __init__(self, seed: int, claims: Sequence[tuple[JobKey, int, int]], program: str) -> None:
        self.rng = random.Random(seed)
        self._claims = claims
        self._program = program

    def text(self, most: int = 1000) -> str:
        """Return one text of at most `most` bytes."""
        pieces = [self._piece() for _ in range(self.rng.choice((1, 1, 2, 3)))]
        raw = self.rng.choice(("", " ", "|", *LINE_ENDS)).join(pieces).encode(errors="surrogateescape")[:most]
        return raw.replace(b"\0", b"").decode(errors="surrogateescape")

    def _piece(self) -> str:
        makers = (self._noise, self._code, self._row, self._row, self._record, self._name, self._option)
        return self.rng.choice(makers)()

    def _noise(self) -> str:
        return bytes(self.rng.choices(range(1, 256), k=self.rng.randrange(60))).decode(errors="surrogateescape")

    def _code(self) -> str:
        run = self._program
        quote = self.rng.choice(("", "'", '"', "\"'", "\\", ")", "}", "]", "\n", "EOF\n", "CLAIMS\n", "FOUND\n"))
        return quote + self.rng.choice((
            f"$({run})", f"`{run}`", f"; {run} ;", f"| {run} |", f"& {run} &", f"\n{run}\n", f"<({run})",
            f"${{x:-$({run})}}", f"$(({run}))", f"a[$({run})]", f"-exec {run} ;", f"\r{run}\r", f"e {run}",
            f"() {{ :; }}; {run}",
        )) + quote  # fmt: skip

    def _option(self) -> str:
        return self.rng.choice(OPTIONS)

    def _name(self) -> str:
        """Return a claim's name or comment, or one that differs slightly."""
        key, slurm_id, user = self.rng.choice(self._claims)
        exact = self.rng.choice((key.name, key.comment, key.folder, f"comment={key.comment}", str(slurm_id), str(user)))
        return self.rng.choice((exact, exact, exact[:-1], f" {exact}", f"{exact} ", f"{exact}\n", f"\n{exact}"))

    def _row(self) -> str:
        """Return a line that a command or a script of the product could have printed about a claim."""
        key, slurm_id, user = self.rng.choice(self._claims)
        state = self.rng.choice(("COMPLETED", "CANCELLED", "FAILED", "NODE_FAIL", "PENDING", "RUNNING"))
        other = self.rng.choice((slurm_id, user, 666, 0))
        queued = f"{slurm_id}|{user}|{state}|1|2|32523|1:00|3|1|n1|None|"
        code = base64.b64encode(queued.encode()).decode()
        end = self.rng.choice(LINE_ENDS)
        line = self.rng.choice((
            queued, f"{slurm_id}|{user}|{state}|0:53|1|1|2|n1", f"{slurm_id}|{user}|CANCELLED|0:0|1|1|2|n1",
            f"job {key.comment} {other} 1 {self.rng.choice(('refused', 'reissued', 'submitted'))} {user} {key.folder}",
            f"queue 0 {code}", f"queue 1 {code}", f"record {code}", f"spool {code}", "unread", "held 0", "clock 1",
            f"entry {slurm_id} {key.folder} {other} 1", f"customer {other}", f"doubt {user}", f"ended {slurm_id}",
            f"adopted {other}", "later no", "refused no", "deposed", "tombstone", "cancelled", "set", "end",
            f"{other} {key.folder} {user}", f"claim {key.folder}", f"removed claim {key.folder}",
            "account root 0 yes own",
        ))  # fmt: skip
        return f"{end}{line}{end}"

    def _record(self) -> str:
        """Return a completion record of a claim, or some of its lines."""
        key, slurm_id, user = self.rng.choice(self._claims)
        end = self.rng.choice(LINE_ENDS)
        lines = [
            f"job_id={slurm_id}", f"name={key.name}", f"user_id={user}", "job_state=5", "exit_code=4021",
            "start_time=1", "end_time=2", "nodes=n1", "restart_cnt=0", f"comment={key.comment}",
        ]  # fmt: skip
        few = self.rng.sample(lines, self.rng.randrange(1, len(lines) + 1))
        text = end.join(self.rng.choice((lines, few)))
        return self.rng.choice((f"{end}{end}{text}{end}{end}", f"deepgrid:1{end}{text}", text))


class Mutations:
    """Random changes of valid texts, of one seed."""

    def __init__(self, seed: int, pieces: Sequence[bytes]) -> None:
        self.rng = random.Random(seed)
        self._pieces = pieces

    def of(self, text: bytes) -> bytes:
        """Return the text with one to four changes: parts lost, repeated, moved, or replaced by a piece or by noise."""
        for _ in range(self.rng.choice((1, 1, 2, 4))):
            start, end = sorted(self.rng.randrange(len(text) + 1) for _ in range(2))
            end = min(end, start + self.rng.choice((0, 1, 4, 40, 400)))
            part = text[start:end]
            new = self.rng.choice((
                b"", part * self.rng.choice((2, 3, 30)), part[::-1], self.rng.choice(self._pieces),
                self.rng.choice(self._pieces) * self.rng.randrange(50), self.rng.randbytes(self.rng.randrange(8)),
            ))  # fmt: skip
            text = text[:start] + new + text[end:]
        return text
