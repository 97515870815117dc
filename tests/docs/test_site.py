"""The documentation builds as a site without a warning and offline, and agrees with the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from blocks.grid import GridBlock
from tests.docs.pages import ROOT
from tools.site import contracts, dps, metrics, schemas

TAGS = "script|img|link|iframe|source|audio|video|object|embed"
RESOURCE = re.compile(rf"<(?:{TAGS})\b[^>]*?\b(?:src|href|data)=\"?([^\"\s>]+)")
IN_STYLES = re.compile(r"(?:@import\s+|url\(\s*)[\"']?([^\"')\s]+)")


# Names of the library that come without documentation.
WITHOUT_A_WORD = {
    "DEFAULT_ADMIN_ROLE",
    "DOMAIN_SEPARATOR",
    "InvalidShortString",
    "OwnershipTransferred",
    "StringTooLong",
}


def test_no_page_loads_anything_from_another_host(site: Path) -> None:
    loaded = {(file.name, url) for file in site.rglob("*.html") for url in RESOURCE.findall(file.read_text())}
    styles = [file for file in site.rglob("*") if file.suffix in (".css", ".html", ".svg")]
    loaded |= {(file.name, url) for file in styles for url in IN_STYLES.findall(file.read_text())}
    assert len(loaded) > 100
    assert not {(file, url) for file, url in loaded if re.match(r"(?:\w+:)?//", url)}


def test_every_marker_was_filled_in(site: Path) -> None:
    assert not [file.name for file in site.rglob("*.html") if "<!-- generated:" in file.read_text()]


def test_the_reference_names_every_verb(site: Path) -> None:
    page = (site / "reference" / "dps.html").read_text()
    verbs = [" ".join(path) for path, _ in dps.verbs()]
    assert {"submit", "job get", "provider serve", "operator deploy", "services serve"} <= set(verbs)
    assert all(f">dps {verb}<" in page for verb in verbs)


def test_the_reference_of_the_client_names_its_public_names(site: Path) -> None:
    import deepgrid.client

    page = (site / "reference" / "client.html").read_text()
    assert not [name for name in deepgrid.client.__all__ if f'id="deepgrid.client.{name}"' not in page]


def test_the_providers_page_explains_every_metric() -> None:
    page = (ROOT / "docs" / "how-to" / "provider.md").read_text()
    assert not [name for name in map(metrics.query_name, metrics.families()) if f"`{name}" not in page]


@pytest.mark.parametrize("block", list(schemas.block_types()), ids=lambda block: block.__name__)
def test_every_field_of_a_block_is_explained(block: type[GridBlock]) -> None:
    rows = {name.strip("`"): (kind, meaning) for name, kind, _, meaning in schemas.rows(block.model_json_schema())}
    assert rows.keys() == block.model_fields.keys()
    assert not [name for name, (kind, meaning) in rows.items() if not meaning and "](#" not in kind]


def test_every_field_of_the_language_is_explained() -> None:
    assert not re.findall(r"^\| `\w+` \|.*\|\s*\|$", schemas.workflow() + schemas.modules(), re.M)


def test_natspec_is_read_with_its_tags() -> None:
    said = contracts.parse(
        " Locks it.\n Twice.\n @dev Reverts.\n @param jobId The job,\n as bytes.\n @return The rate."
    )
    assert said == contracts.NatSpec("Locks it. Twice.", "Reverts.", {"jobId": "The job, as bytes."}, ["The rate."])


@pytest.mark.parametrize("contract", contracts.CONTRACTS)
def test_the_whole_surface_is_documented(contract: str) -> None:
    entries = list(contracts.entries(contract))
    assert len(entries) > 20
    silent = {one["name"] for one in entries if (one["type"], one["name"]) not in contracts.natspec_of(contract)}
    assert silent <= WITHOUT_A_WORD
