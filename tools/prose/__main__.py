"""`python -m tools.prose [FILE ...]`: checks words and the length of sentences; exit status 1 when a rule is broken.

The rules are in rules.toml next to this file. Lengths are judged per area (a package of the library, a folder of docs).
Without files it reads all that git tracks. `--lengths` lists the longest sentences too.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tools.prose.texts import Text, noun_phrases, sentences, texts

MEDIAN_WORDS, P90_WORDS = 16, 28
MOST_WORDS, MOST_CLAUSES, MOST_CELL = 45, 3, 400
ENDINGS = (".py", ".md", ".sol", ".sh", ".lua")
CLAUSE = re.compile(r"\b(?:that|which|whose|what|who)\b", re.IGNORECASE)
RULES = [
    (re.compile(rule["find"], re.IGNORECASE), rule["write"])
    for rule in tomllib.loads((Path(__file__).parent / "rules.toml").read_text())["rule"]
]


def main() -> int:
    """Print every broken rule as FILE:LINE, then the lengths per area."""
    arguments = [argument for argument in sys.argv[1:] if argument != "--lengths"]
    paths = [Path(name) for name in arguments] or _tracked_files()
    broken: list[str] = []
    lengths: dict[str, list[int]] = defaultdict(list)
    longest: list[tuple[int, str]] = []
    for path in paths:
        found = texts(path)
        broken += _broken_rules(path, found)
        for text in found:
            for sentence in sentences(text) if text.counted else ():
                lengths[_area(path)].append(len(sentence.split()))
                longest.append((len(sentence.split()), f"{path}:{text.line}: {sentence}"))
    for area, counts in sorted(lengths.items()):
        median, p90 = _figures(counts)
        print(f"{area:32} {len(counts):6} sentences  median {median:4.0f}  p90 {p90:4.0f}")
        if not arguments and len(counts) >= 20 and (median > MEDIAN_WORDS or p90 > P90_WORDS):
            broken.append(f"{area}: median {median:.0f} (at most {MEDIAN_WORDS}), p90 {p90:.0f} (at most {P90_WORDS})")
    if "--lengths" in sys.argv:
        print(*(f"{count} {where}" for count, where in sorted(longest, reverse=True)[:60]), sep="\n")
    print(*broken, sep="\n")
    return 1 if broken else 0


def _figures(counts: list[int]) -> tuple[float, float]:
    ordered = sorted(counts)
    return statistics.median(ordered), ordered[min(len(ordered) - 1, len(ordered) * 9 // 10)]


def _broken_rules(path: Path, found: list[Text]) -> Iterator[str]:
    for text in found:
        for sentence in [text.words] if not text.counted else sentences(text):
            plain = re.sub(r"`[^`]*`|\"[^\"]*\"", "CODE", sentence)
            for pattern, write in RULES:
                if hit := pattern.search(plain):
                    yield f"{path}:{text.line}: '{hit[0]}': write {write}"
            if text.counted and len(sentence.split()) > MOST_WORDS:
                yield f"{path}:{text.line}: a sentence of {len(sentence.split())} words: {sentence[:60]}..."
            if len(CLAUSE.findall(plain)) >= MOST_CLAUSES:
                yield f"{path}:{text.line}: {MOST_CLAUSES} or more of that/which/whose/what/who: {sentence[:60]}..."
    if path.suffix == ".py":
        for line, words in noun_phrases(path):
            yield f"{path}:{line}: '{words}': begin the docstring of a function with a verb, such as Return or Yield"
    if path.suffix == ".md":
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if line.startswith("|") and max(map(len, line.split("|"))) > MOST_CELL:
                yield f"{path}:{number}: a table cell of more than {MOST_CELL} characters"


def _area(path: Path) -> str:
    parts = path.parts[:-1]
    return "/".join(parts[:2]) if parts and parts[0] in ("deepgrid", "deployments", "tests") else "/".join(parts[:1])


def _tracked_files() -> list[Path]:
    names = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True).stdout.splitlines()
    return [Path(name) for name in names if name.endswith(ENDINGS) and Path(name).is_file()]


if __name__ == "__main__":
    sys.exit(main())
