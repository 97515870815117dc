"""`dps provider init`: asks for a provider's settings, checks each, and makes the blocks and deployments of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings

from deepgrid.cli.access.confirmation import confirm, interruptible, on_terminal
from deepgrid.cli.access.key_file import existing_key
from deepgrid.cli.error_boundary import runs
from deepgrid.errors import ConfigurationError, GridError, InputError
from deepgrid.plain_text import plain
from deployments.provider.setup.answer_checks import (
    check,
    login_settings,
    path_of,
    read_login,
    show_host_key,
    strangers,
    trust_host_key,
)
from deployments.provider.setup.document import Document
from deployments.provider.setup.prefect_plan import Plan, apply, make_plan
from deployments.provider.setup.provider_questions import QUESTIONS, Question
from deployments.provider.setup.same_nodes import other_sellers

BACK, EMPTY = "<", "-"
UNITS = Path("/etc/systemd/system")


@runs
async def init(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The settings file.")] = Path("provider.toml"),
    source: Annotated[
        Path | None, typer.Option("--from", metavar="FILE", help="Begin with the settings of this file.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting, such as login.port=22.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing, and apply the plan.")] = False,
) -> None:
    """Set up a cluster: ask, check each answer, write one settings file, make blocks and deployments of it."""
    document = Document.read(file.expanduser())
    if source is not None:
        document = Document(document.path, Document.read(source.expanduser()).text)
    for one in settings or ():
        key, equals, value = one.partition("=")
        if not equals:
            raise InputError(f"{one[:60]!r} is not a setting.", next_step="Write SECTION.NAME=VALUE.")
        document.set(key, value)
    answers = document.answers()
    if on_terminal() and not (yes or settings or source):
        await _ask(answers, document.path)
    else:
        await _check_all(answers, document.path)
    for question in QUESTIONS:
        if question.applies(answers):
            document.set(question.key, answers[question.key])
    await _carry_out(document, answers, yes=yes)


async def _ask(answers: dict[str, str], file: Path) -> None:
    """Ask each question that applies until its answer can be used."""
    typer.echo(
        f"Enter takes the answer in brackets, {EMPTY} is empty, {BACK} goes back. Nothing changes before the end.",
        err=True,
    )
    at = 0
    while at < len(QUESTIONS):
        question = QUESTIONS[at]
        if not question.applies(answers):
            at += 1
            continue
        known = answers.get(question.key, "")
        usual = known or question.proposal(answers, file)
        with interruptible():
            text = str(typer.prompt(question.words, default=usual, show_default=bool(usual), err=True)).strip()
        if text == BACK:
            at = max((n for n in range(at) if QUESTIONS[n].applies(answers)), default=0)
            continue
        text = "" if text == EMPTY else text
        if not text and not question.optional:
            continue
        answers[question.key] = text
        if await _is_usable(question, answers):
            at += 1
        else:
            answers[question.key] = known


async def _is_usable(question: Question, answers: dict[str, str]) -> bool:
    try:
        if question.key == "grid.key_file":
            existing_key(path_of(answers[question.key]))  # offers to make a key
        if question.key == "login.known_hosts_file":
            await _trust(answers)
        if question.kind is not str:
            Document(Path(), "").set(question.key, answers[question.key])
        found = await check(question.key, answers)
    except GridError as error:
        typer.echo(f"  {plain(str(error))}", err=True)
        return False
    if found:
        typer.echo(f"  {plain(found)}", err=True)
    return True


async def _trust(answers: dict[str, str]) -> None:
    """Show the host keys that no known_hosts file names, and add them if the user agrees."""
    settings = login_settings(answers)
    for node in strangers(settings):
        key = await show_host_key(settings, node)
        typer.echo(f"  The host key of {node.host} is {key.get_name()} {key.fingerprint}.", err=True)
        with interruptible():
            if not typer.confirm("  Is this the fingerprint that the cluster's administrator gave you?", err=True):
                raise ConfigurationError("The host key is not trusted.", next_step="Ask the cluster's administrator.")
        trust_host_key(node, key)


async def _check_all(answers: dict[str, str], file: Path) -> None:
    """Raise ConfigurationError with all settings that are missing or cannot be used."""
    missing = []
    for question in QUESTIONS:
        if question.applies(answers) and not answers.get(question.key):
            usual = question.proposal(answers, file) if "cluster" in answers or question.key == "cluster" else ""
            answers[question.key] = "" if question.optional else usual
            if not (answers[question.key] or question.optional):
                missing.append(f"{question.key}: {question.words}")
    if missing:
        raise ConfigurationError(
            "These settings are missing:\n" + "\n".join([*missing, ""]),
            next_step="Give each by --set KEY=VALUE, or run `dps provider init` on a terminal.",
        )
    faults = []
    for question in filter(lambda one: one.applies(answers), QUESTIONS):
        try:
            await check(question.key, answers)
        except GridError as error:
            faults.append(f"{question.key}: {error}")
    if faults:
        raise ConfigurationError("\n".join(faults))


async def _carry_out(document: Document, answers: dict[str, str], *, yes: bool) -> None:
    url, login = answers["prefect.api_url"].rstrip("/"), read_login(answers)
    environment = {"PREFECT_API_URL": url} | ({"PREFECT_API_AUTH_STRING": login} if login else {})
    with temporary_settings({PREFECT_API_URL: url, PREFECT_API_AUTH_STRING: login or None}):
        plan = await make_plan(document.values())
        writes = document.text != document.before or not document.path.exists()
        if not (writes or plan.lines):
            print("Nothing changed.")
            return
        for remark in await other_sellers(answers):
            print(f"warning {plain(remark)} Sell a node only once: give one of them other nodes.")
        _show(document, plan, writes=writes)
        if not yes and not on_terminal():
            print("Nothing was changed; run it with --yes to apply.")
            return
        confirm("Apply this plan?", force=yes)
        if writes:
            document.write()
        await apply(plan, environment)
    unit = f"deepgrid-supervisor-{plan.cluster}"
    start = (
        f"systemctl enable --now {unit}"
        if (UNITS / f"{unit}.service").exists()
        else f"dps provider serve {plan.cluster}"
    )
    print(f"Done. Next: `{start}`, and `dps provider doctor {plan.cluster}`.")
    if plan.blocks:
        print(f"A supervisor that runs takes prices and labels by a run of register_provider/{plan.cluster},")
        print("and all other settings at its next start.")


def _show(document: Document, plan: Plan, *, writes: bool) -> None:
    if writes:
        print(f"file {document.path}: {'changed' if document.before else 'new'}")
    for line in plan.lines:
        print(plain(line))
