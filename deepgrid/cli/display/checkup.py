"""Reports the findings of the doctors, as text or as JSON."""

from __future__ import annotations

from collections.abc import Sequence

from deepgrid.cli.display.screen import Screen, print_json
from deepgrid.errors import ConfigurationError
from deepgrid.findings import Finding, Level

MARKS = {Level.GOOD: ("ok  ", "green"), Level.WARNING: ("warn", "yellow"), Level.BAD: ("BAD ", "bold red")}


def report(findings: Sequence[Finding], what: str, *, as_json: bool) -> None:
    """Print the findings on `what`, such as "the services". Raises ConfigurationError if one keeps it from working."""
    if as_json:
        print_json(findings_as_json(findings))
    else:
        show_findings(Screen(), findings)
    bad = sum(finding.level is Level.BAD for finding in findings)
    if bad:
        raise ConfigurationError(f"{bad} of {len(findings)} findings keep {what} from working.")


def show_findings(screen: Screen, findings: Sequence[Finding]) -> None:
    """Print one line per finding, with the next step below it."""
    width = max(len(finding.subject) for finding in findings)
    for finding in findings:
        screen.line(MARKS[finding.level], f"  {finding.subject:<{width}}  {finding.words}")
        if finding.next_step:
            screen.line(f"      {'':<{width}}  ", (finding.next_step, "dim"))


def findings_as_json(findings: Sequence[Finding]) -> list[dict[str, str]]:
    return [
        {
            "subject": finding.subject,
            "level": finding.level.value,
            "words": finding.words,
            "next_step": finding.next_step,
        }
        for finding in findings
    ]
