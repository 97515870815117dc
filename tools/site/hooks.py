"""Hooks of MkDocs (`hooks` in mkdocs.yml): fill in generated parts, and adapt what only works in a repository.

* `<!-- generated: NAME -->` becomes the Markdown of `GENERATORS[NAME]`.
* `<!-- source: FILE -->` becomes the source of a file of examples/.
* A link to a file of the repository leads to its copy in the site. A link to a file without a copy becomes plain text.
* A Mermaid diagram of states becomes a table: the script that draws it would come from another host.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files

from tools.site import contracts, dps, examples, metrics, ranking, schemas

ROOT = Path(__file__).parents[2]
COPIES = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security-policy.md"}
GENERATORS = {
    "contracts": contracts.reference,
    "dps": dps.reference,
    "examples": examples.listing,
    "metrics": metrics.table,
    "blocks": schemas.blocks,
    "workflow": schemas.workflow,
    "modules": schemas.modules,
}
_MARKER = re.compile(r"^<!-- generated: (\w+) -->$", re.M)
_SOURCE = re.compile(r"^<!-- source: (\S+) -->$", re.M)
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
_STATES = re.compile(r"^```mermaid\nstateDiagram-v2\n(.*?)^```$", re.M | re.S)
_EDGE = re.compile(r"^\s*(\S+) --> (\S+): (.+)$", re.M)


def on_files(files: Files, *, config: Any) -> Files:
    """Add the copies of files outside docs/."""
    for source, page in COPIES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text()))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Files) -> str:
    """Replace what MkDocs cannot show itself."""
    source = page.file.src_uri
    page.meta.setdefault("search", ranking.boost(source, [section.title for section in page.ancestors]))
    origin = {copy: name for name, copy in COPIES.items()}.get(source, f"docs/{source}")
    markdown = _MARKER.sub(lambda marker: GENERATORS[marker[1]](), markdown)
    markdown = _SOURCE.sub(lambda marker: examples.source(marker[1]), markdown)
    markdown = _STATES.sub(lambda diagram: _state_table(diagram[1]), markdown)
    return ranking.hide(_LINK.sub(lambda link: _rewrite_link(link, Path(origin), source), markdown))


@event_priority(100)  # before the theme writes the index
def on_post_build(*, config: Any) -> None:
    """Let the search find what people type."""
    ranking.prepare(config.plugins["material/search"].search_index)


def _state_table(edges: str) -> str:
    rows = [(a.replace("[*]", ""), b, calls) for a, b, calls in _EDGE.findall(edges)]
    return "\n".join(["| from | to | by |", "|---|---|---|", *(f"| {a} | {b} | {calls} |" for a, b, calls in rows)])


def _rewrite_link(link: re.Match[str], origin: Path, page: str) -> str:
    """Return the link as the site needs it. `origin` is the file with the link in the repository."""
    text, target, anchor = link[1], link[2], link[3] or ""
    if ":" in target:
        return link[0]
    path = os.path.normpath(origin.parent / target)
    if path.startswith("docs/"):
        inside = path.removeprefix("docs/")
    elif path in COPIES:
        inside = COPIES[path]
    elif path == "examples" or path in examples.paths():
        inside, anchor = "reference/examples.md", f"#{examples.anchor(path)}" if path != "examples" else ""
    else:
        return text
    return f"[{text}]({os.path.relpath(inside, Path(page).parent)}{anchor})"
