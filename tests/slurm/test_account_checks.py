"""Findings of `dps provider doctor` on the accounts of jobs, for the facts of many sites and on real sites."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from deepgrid.findings import Finding, Level
from deepgrid.slurm.setup.account_findings import AccountFacts, Known, examine_accounts, judge_accounts
from deepgrid.slurm.ssh.login import Login
from deepgrid.slurm.ssh.login_settings import Become, CustomerAccounts, LoginSettings, as_expression
from deployments.onemachine.slurm import slurm_files
from tests.slurm.ordinary import operator, ordinary_supervisor
from tests.slurm.people import account
from tests.slurm.support import Box

ALICE, BOB = "0x" + "a" * 40, "0x" + "b" * 40
ROOT = {"login": "root", "uid": "0", "slurm_user": "slurm", "private": "none", "level": ""}
GRID = {**ROOT, "login": "grid", "uid": "900", "level": "Operator"}
LOGIN = LoginSettings("host", 22, "grid", Path("key"), Path("known"), "/srv/grid")
TABLE = replace(LOGIN, accounts=CustomerAccounts({ALICE: "alice", BOB: "bob"}))
SUDO = replace(TABLE, become=Become.SUDO)
PATTERN = replace(LOGIN, accounts=CustomerAccounts(pattern="ds-{digits:24}"))
THERE = {"alice": Known(1001), "bob": Known(1002)}
GRANTED = {"alice": Known(1001, by_sudo=True), "bob": Known(1002, by_sudo=True)}

CASES: dict[str, tuple[dict[str, str], dict[str, Known], LoginSettings, str, Level, str]] = {
    "one account, the login's": (ROOT, {}, LOGIN, "accounts", Level.WARNING, "supervisor's own account: they can read"),
    "one account": (
        ROOT, {"jobs": Known(999)}, replace(LOGIN, job_account="jobs"), "accounts", Level.WARNING, "the account jobs:",
    ),
    "one account that does not exist": (
        ROOT, {}, replace(LOGIN, job_account="jobs"), "accounts", Level.BAD, "no account jobs: their jobs are refused",
    ),
    "table": (ROOT, THERE, TABLE, "accounts", Level.GOOD, "2 customers have accounts of their own, all others are ref"),
    "table with others": (
        ROOT, {**THERE, "all": Known(999)}, replace(TABLE, job_account="all"), "accounts", Level.WARNING, "share all",
    ),
    "table, one missing": (ROOT, {"bob": Known(1002)}, TABLE, "accounts", Level.BAD, "no account alice:"),
    "table, one is root": (ROOT, {**THERE, "bob": Known(0)}, TABLE, "accounts", Level.BAD, "bob is root"),
    "pattern": ({**ROOT, "like": "7"}, {}, PATTERN, "accounts", Level.GOOD, "ds-{digits:24}; the login node lists 7"),
    "pattern, no account exists": ({**ROOT, "like": "0"}, {}, PATTERN, "accounts", Level.WARNING, "lists 0 of them"),
    "uid without root": (GRID, THERE, TABLE, "become", Level.BAD, "grid is not root"),
    "pattern by uid without root": ({**GRID, "like": "0"}, {}, PATTERN, "become", Level.BAD, "grid is not root"),
    "sudo": (GRID, GRANTED, SUDO, "become", Level.GOOD, "by sudo"),
    "sudo refuses one": (
        GRID, {**GRANTED, "bob": Known(1002, by_sudo=False)}, SUDO, "become", Level.BAD, "cannot become bob by sudo",
    ),
    "sudo, the group is shared": (
        GRID, {**GRANTED, "bob": Known(1002, True, in_our_group=True)}, SUDO, "become", Level.BAD, "grid's group",
    ),
    "no operator": ({**GRID, "level": "None"}, GRANTED, SUDO, "rights", Level.WARNING, "topped up"),
    "no operator, jobs are private": (
        {**GRID, "level": "", "private": "accounts,jobs"}, GRANTED, SUDO, "rights", Level.BAD, "hides the jobs",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_fault_is_reported(case: str) -> None:
    values, accounts, settings, subject, level, words = CASES[case]
    findings = judge_accounts(AccountFacts(values, accounts), settings)
    assert all(finding.next_step for finding in findings if finding.level is not Level.GOOD)
    assert [one for one in findings if (one.subject, one.level) == (subject, level) and words in one.words], findings


@pytest.mark.parametrize(("values", "settings"), [(ROOT, TABLE), (GRID, SUDO)], ids=["root", "sudo"])
def test_a_sound_site_has_only_good_findings(values: dict[str, str], settings: LoginSettings) -> None:
    accounts = GRANTED if settings is SUDO else THERE
    assert {one.level for one in judge_accounts(AccountFacts(values, accounts), settings)} == {Level.GOOD}


@pytest.mark.parametrize("pattern", ["{address}", "ds-{digits}", "a.b_{digits:24}@x"])
def test_names_of_a_pattern_are_recognised(pattern: str) -> None:
    expression = as_expression(pattern)
    name = CustomerAccounts(pattern=pattern).of("0x" + "3F" * 20)
    assert name is not None
    assert re.fullmatch(expression, name)
    assert not re.fullmatch(expression, f"{name}a")
    assert as_expression("") == ""


async def examined(settings: LoginSettings) -> dict[str, Finding]:
    login = Login(settings)
    try:
        return {finding.subject: finding for finding in await examine_accounts(login, settings)}
    finally:
        await login.close()


@pytest.fixture(scope="module")
def alice() -> Iterator[str]:
    with account() as name:
        yield name


@pytest.mark.skipif(os.getuid() != 0, reason="accounts are made by root")
async def test_a_real_site_by_uid(box: Box, alice: str) -> None:
    table = replace(box.settings, job_account=None, accounts=CustomerAccounts({ALICE: alice}))
    assert {one.level for one in (await examined(table)).values()} == {Level.GOOD}
    lacking = replace(table, accounts=CustomerAccounts({ALICE: alice, BOB: "nobody-is-called-so"}))
    assert "no account nobody-is-called-so" in (await examined(lacking))["accounts"].words
    assert (await examined(replace(table, accounts=CustomerAccounts(pattern="ds-{digits}"))))[
        "accounts"
    ].words.endswith("the login node lists 0 of them.")


@pytest.mark.long  # starts a second sshd, and adds an operator to accounting
@pytest.mark.skipif(os.getuid() != 0, reason="accounts are made by root")
async def test_a_real_site_by_sudo(box: Box, alice: str, state_folder: Path) -> None:
    folder = slurm_files.make_folder(state_folder / "checked", 0o755)
    with ordinary_supervisor(box, folder, CustomerAccounts({ALICE: alice})) as settings, account() as bob:
        found = await examined(replace(settings, accounts=CustomerAccounts({ALICE: alice, BOB: bob})))
        assert f"cannot become {bob} by sudo" in found["become"].words
        assert (found["rights"].level, settings.user in found["rights"].next_step) == (Level.WARNING, True)
        with operator(box, settings.user):
            assert {name: one.level for name, one in (await examined(settings)).items()} == {
                "accounts": Level.GOOD, "become": Level.GOOD,
            }  # fmt: skip
        assert "is not root" in (await examined(replace(settings, become=Become.UID)))["become"].words
