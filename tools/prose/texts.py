"""The sentences of a file: from prose in Markdown, docstrings, comments and messages.

Code, commands, tables and headings are not sentences. Inline code counts as one word.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# A message is a string that a person reads; shorter ones are mostly keys and formats.
WORDS_OF_A_MESSAGE = 5

NOUN_PHRASE = re.compile(r"(?:The|An?|Its|Their|Those|Whether|What|How|Where|When|Why|Names?|Ids?|All|Every)\b")
ATTRIBUTE = re.compile(r"property|fixture|contextmanager")


@dataclass(frozen=True)
class Text:
    """A run of prose, where it begins, and whether its sentences are counted.

    Messages (`counted` false) are fragments of f-strings and help texts: only their words are checked.
    """

    line: int
    words: str
    counted: bool = True


def texts(path: Path) -> list[Text]:
    """Return every run of prose in the file, in no particular order."""
    content = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return [*_docstrings_and_messages(content), *_python_comments(content)]
    if path.suffix == ".md":
        return list(_paragraphs(content))
    if path.suffix == ".sol":
        return list(_comment_blocks(content, re.compile(r"^\s*(?:///|//|/\*\*?|\*/?)(.*?)(?:\*/)?$")))
    if path.suffix == ".lua":
        return list(_comment_blocks(content, re.compile(r"^\s*--(.*)$")))
    return list(_comment_blocks(content, re.compile(r"^\s*#(?!!)(.*)$")))


def sentences(text: Text) -> list[str]:
    """Return the sentences of a text, without fragments of fewer than three words."""
    found: list[str] = []
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[*-]|\d+\.)\s)|\n(?=\s*@\w+)", text.words):
        flat = re.sub(r"^(?:[*-]|\d+\.|@(?:param|return)\s+\w+|@\w+)\s+", "", " ".join(block.split()))
        found += re.split(r"(?<=[.!?])(?:[)\"'*_]*)\s+(?=[A-Z0-9`\"'(\[*])|(?<=:)\s(?=[A-Z])", flat)
    return [sentence for sentence in found if len(sentence.split()) >= 3]


def noun_phrases(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and beginning of docstrings of functions that return a value and do not begin with a verb."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.name.startswith("test_"):
            continue
        returned = ast.unparse(node.returns) if node.returns else "None"
        attribute = any(ATTRIBUTE.search(ast.unparse(decorator)) for decorator in node.decorator_list)
        docstring = ast.get_docstring(node) or ""
        if returned != "None" and not attribute and NOUN_PHRASE.match(docstring):
            yield node.lineno, " ".join(docstring.split()[:5])


def _docstrings_and_messages(content: str) -> Iterator[Text]:
    tree = ast.parse(content)
    docstrings = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            value = body[0].value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                docstrings.add(id(value))
                yield Text(value.lineno, _prose_of_a_docstring(value.value))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            words = re.findall(r"(?<!\S)[A-Za-z][a-z']*[,.;:]?(?!\S)", node.value)
            if len(words) >= WORDS_OF_A_MESSAGE and "\n" not in node.value.strip():
                yield Text(node.lineno, node.value, counted=False)


def _prose_of_a_docstring(docstring: str) -> str:
    """Return a docstring without doctests, examples and literal blocks. Each list item is a separate sentence."""
    kept, literal = [], False
    for line in ast.literal_eval(repr(docstring)).splitlines():
        deep = line.startswith("        ")
        if line.rstrip().endswith("::") or line.strip() in ("Example:", "Examples:"):
            literal = True
        elif literal and line.strip() and not line.startswith("     "):
            literal = False
        if not literal and not line.strip().startswith((">>>", "...")):
            named = re.match(r"^\s+(?:\*{0,2}\w+|\S+Error):\s+(.*)$", line)
            kept.append("\n" + named[1] if named else line.strip() if not deep else " " + line.strip())
    return "\n".join(kept)


def _python_comments(content: str) -> Iterator[Text]:
    block: list[str] = []
    first = last = 0
    for token in tokenize.generate_tokens(io.StringIO(content).readline):
        if token.type != tokenize.COMMENT or re.match(r"#\s*(?:type:|noqa|pragma|!|mypy)", token.string):
            continue
        whole_line = token.line.strip().startswith("#")
        if block and (token.start[0] != last + 1 or not whole_line):
            yield Text(first, "\n".join(block))
            block = []
        if not block:
            first = token.start[0]
        block.append(token.string.lstrip("#: "))
        last = token.start[0]
    if block:
        yield Text(first, "\n".join(block))


def _comment_blocks(content: str, comment: re.Pattern[str]) -> Iterator[Text]:
    block: list[str] = []
    first = 0
    for number, line in enumerate([*content.splitlines(), ""], 1):
        found = comment.match(line)
        if found and not re.match(r"\s*(?:shellcheck|solhint|slither|forge|SPDX|SBATCH|!)", found[1]):
            first = first if block else number
            block.append(found[1].strip())
        elif block:
            yield Text(first, "\n".join(block))
            block = []


def _paragraphs(content: str) -> Iterator[Text]:
    block: list[str] = []
    first, fenced = 0, False
    for number, line in enumerate([*content.splitlines(), ""], 1):
        bare = line.strip()
        if bare.startswith("```"):
            fenced = not fenced
        skipped = fenced or bare.startswith(("```", "#", "|", "    ", "![", "<", "===", "---", "!!!", ":::"))
        if (bare and not skipped and not line.startswith("    ")) or (block and bare and not skipped):
            first = first if block else number
            block.append(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", bare))
        elif block:
            yield Text(first, "\n".join(block))
            block = []
