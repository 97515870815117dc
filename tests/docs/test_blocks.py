"""Each block of code in the documentation is checked, or its page says why not: `<!-- not run: reason -->`.

Workflow files are validated, Python is type-checked, shell is parsed. Commands and options exist.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import yaml

from deepgrid import workflow
from tests.docs.blocks import SHELLS, Block, blocks, commands, inline_commands
from tests.docs.command_line import fault
from tests.docs.pages import ROOT

BLOCKS = blocks()
ELSEWHERE = ("mermaid",)  # diagrams of states, checked by tests/contracts/test_matrix.py
LANGUAGES = (*SHELLS, *ELSEWHERE, "yaml", "python")
RESOURCES = {"tasks": 1, "cpusPerTask": 1, "memPerCpu": 128, "gpus": 0}


def _of(*languages: str) -> list[Block]:
    return [block for block in BLOCKS if block.kind in languages and not block.not_run]


def test_every_block_is_checked_or_says_why_not() -> None:
    assert len(BLOCKS) > 50
    assert not [str(block) for block in BLOCKS if block.kind not in LANGUAGES and not block.not_run]
    assert all(len(block.not_run.split()) >= 3 for block in BLOCKS if block.not_run)


@pytest.mark.parametrize("block", _of("yaml"), ids=str)
def test_workflow_files_are_valid(block: Block) -> None:
    text = block.text
    if "resources" not in yaml.safe_load(text):  # only the steps of one
        text += yaml.safe_dump({"resources": RESOURCES})
    assert workflow.parse(text, block.page).model.steps


@pytest.mark.parametrize("block", _of(*SHELLS), ids=str)
def test_scripts_can_be_parsed_and_their_commands_exist(block: Block) -> None:
    subprocess.run(["bash", "-n"], input=block.script, text=True, check=True, capture_output=True)
    assert not [wrong for wrong in map(fault, commands(block.script)) if wrong]


@pytest.mark.parametrize("page", sorted({page for page, _ in inline_commands()}))
def test_commands_in_the_text_exist(page: str) -> None:
    spans = {span for where, span in inline_commands() if where == page}
    faults = {span: fault(commands(span.replace("[", "").replace("]", ""))[0], whole=False) for span in spans}
    assert not {span: wrong for span, wrong in faults.items() if wrong}


def test_python_passes_strict_type_checks(tmp_path: Path) -> None:
    """All blocks, and the programs of examples, with the settings and the cache of `./run lint`."""
    folders = ("prefect", "python", "study")
    files = [file for folder in folders for file in sorted((ROOT / "examples" / folder).glob("*.py"))]
    assert files
    for number, block in enumerate(_of("python")):
        files.append(tmp_path / f"block_{number}.py")
        files[-1].write_text(f"# {block}\n{_module(textwrap.dedent(block.text))}")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *map(str, files)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _module(text: str) -> str:
    """Return the block as a module. Code that awaits at the top level goes into a function."""
    tree = compile(text, "block", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    waits = any(isinstance(node, ast.AsyncWith | ast.AsyncFor | ast.Await) for node in tree.body)
    return "async def block() -> None:\n" + textwrap.indent(text, "    ") if waits else text
