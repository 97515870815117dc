"""Checks a command line of the documentation against the real commands. Words in capitals are placeholders."""

from __future__ import annotations

import importlib
import importlib.util
import re
from functools import cache
from itertools import pairwise
from typing import Any

import yaml

from tests.docs.pages import ROOT
from tools.site import dps

PLACEHOLDER = re.compile(r"\.\.\.|[A-Z][A-Z_.]*|\$\{?\w+\}?|0x\.\.\.")


def fault(words: list[str], *, whole: bool = True) -> str:
    """Return what is wrong with the command, or nothing. Ignores programs that are not ours. Without `whole` the text
    only mentions the command, and may leave arguments out.
    """
    if words[0] == "dps":
        return _dps(words[1:], whole)
    checks = {"./run": _run, "prefect": _prefect, ".venv/bin/python": _python}
    check = checks.get(words[0])
    return check(words[1:]) if check else ""


def _dps(words: list[str], whole: bool) -> str:
    words = [word for word in _without_redirections(words) if word != "--debug"]
    if not words or words[0] in ("--help", "--version") or PLACEHOLDER.fullmatch(words[0]):
        return ""
    verbs = dict(_verbs())
    for length in (2, 1):
        if (path := tuple(words[:length])) in verbs:
            return _parameters(verbs[path], words[length:], whole)
    is_group = any(verb[0] == words[0] for verb in verbs) and words[1:] in ([], ["--help"])
    return "" if is_group else f"dps has no verb {words[:2]}"


def _parameters(command: Any, words: list[str], whole: bool) -> str:
    options = {name: one for one in command.params for name in (*one.opts, *one.secondary_opts)}
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    given = 0
    rest = list(words)
    while rest:
        word, _, value = rest.pop(0).partition("=")
        if word == "--":
            given += len(rest)
            break
        if not word.startswith("-"):
            given += 1
        elif word not in (*options, "--help"):
            return f"there is no option {word}"
        elif word != "--help" and not options[word].is_flag and not value:
            if not rest and whole:
                return f"{word} needs a value"
            rest = rest[1:]
    least = sum(one.required for one in arguments) if whole and "--help" not in words else 0
    most = sum(one.nargs if one.nargs > 0 else 99 for one in arguments)
    return "" if least <= given <= most else f"{given} arguments instead of {least} to {most}"


def _run(words: list[str]) -> str:
    known = re.findall(r"^  ([a-z]+)\b", (ROOT / "run").read_text().split("Usage:")[1].split("END")[0], re.M)
    if words and words[0] not in known:
        return f"./run has no command {words[0]}"
    if words[:1] == ["bench"] and len(words) > 1 and not PLACEHOLDER.fullmatch(words[1]):
        found = (ROOT / "tests" / "bench" / f"{words[1].replace('-', '_')}.py").exists()
        return "" if found else f"there is no bench {words[1]}"
    if words[:1] == ["test"]:
        paths = [word for word in words[1:] if word.startswith("tests/")]
        return "".join(f"there is no {path}" for path in paths if not (ROOT / path).exists())
    return ""


def _prefect(words: list[str]) -> str:
    """Return the fault of a command that names a missing deployment or parameter, or nothing."""
    if words[:2] not in (["deployment", "run"], ["deployment", "inspect"]):
        return ""
    flow = _flow(words[2].split("/")[0])
    if flow is None:
        return f"there is no deployment {words[2]}"
    given = [after for before, after in pairwise(words) if before in ("-p", "--param")]
    return "".join(f"{flow.name} has no {one}" for one in given if one.split("=")[0] not in flow.parameters.properties)


def _python(words: list[str]) -> str:
    found = words[0] != "-m" or importlib.util.find_spec(words[1])
    return "" if found else f"there is no module {words[1]}"


def _without_redirections(words: list[str]) -> list[str]:
    kept, rest = [], list(words)
    while rest:
        word = rest.pop(0)
        if re.fullmatch(r"[<>]+", word):
            rest = rest[1:]
        else:
            kept.append(word)
    return kept


@cache
def _verbs() -> tuple[tuple[tuple[str, ...], Any], ...]:
    return tuple(dps.verbs())


@cache
def _flow(name: str) -> Any:
    for file in (ROOT / "deployments").glob("*/prefect.yaml"):
        for deployment in yaml.safe_load(file.read_text())["deployments"]:
            module, _, function = deployment["entrypoint"].rpartition(".")
            if function == name:
                return getattr(importlib.import_module(module), function)
    return None
