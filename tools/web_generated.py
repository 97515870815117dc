"""Writes the parts of the web app that come from Python: schema, states, features, error sentences, examples, limits.

Usage: `python -m tools.web_generated`. The files are in web/src/generated, which git ignores.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from deepgrid.chain.transactions.error_sentences import SENTENCES
from deepgrid.lifecycle.feature_labels import FEATURES
from deepgrid.lifecycle.states import JobStatus
from deepgrid.workflow.schema import json_schema

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "web" / "src" / "generated"
CONTRACTS = ("MetaScheduler", "ProviderManager", "Credit")


def generated_files() -> dict[str, Any]:
    """Return the name of each file without its ending, and its content."""
    return {
        "schema": json_schema(),
        "states": [{"name": one.name, "words": one.words, "hot": one.hot} for one in JobStatus],
        "features": FEATURES,
        "sentences": {name: list(texts) for name, texts in SENTENCES.items()},
        "examples": {path.stem: path.read_text() for path in sorted((ROOT / "examples").glob("*.yaml"))},
        **{name: _abi(name) for name in CONTRACTS},
    }


def main() -> None:
    """Write the files that changed."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, content in generated_files().items():
        path, text = FOLDER / f"{name}.json", json.dumps(content, indent=1, ensure_ascii=False) + "\n"
        if not path.is_file() or path.read_text() != text:
            path.write_text(text)


def _abi(name: str) -> list[Any]:
    compiled = json.loads((ROOT / "deepgrid" / "chain" / "compiled" / f"{name}.json").read_text())
    abi: list[Any] = compiled["abi"]
    return abi


if __name__ == "__main__":
    main()
