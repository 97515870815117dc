"""`GET /v1/grid`: the public part of the address book, for pages. It holds no URL that the operator did not publish."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

from deepgrid.chain.book import AddressBook
from deepgrid.gateway.settings import WebSettings


def grid_info(book: AddressBook, settings: WebSettings, build: str | None) -> dict[str, Any]:
    """What a page knows of its grid. `build` is the hash of the inputs of the web app's build, if there is one."""
    limits = settings.limits
    found: dict[str, Any] = {
        "chain_id": book.chain_id, "credit": book.credit, "meta_scheduler": book.meta_scheduler,
        "provider_manager": book.provider_manager, "first_block": book.first_block,
        "services": {"version": _version()}, "build": build,
        "local": settings.local, "modules": settings.local, "transactions": settings.transactions,
        "limits": {
            "check_bytes": limits.check_bytes, "calls_per_batch": limits.calls_per_batch,
            "answer_bytes": limits.answer_bytes, "batch_bytes": limits.batch_bytes, "log_blocks": limits.log_blocks,
            "blocks_back": limits.blocks_back,
        },
    }  # fmt: skip
    prefect_url = settings.prefect_url or book.prefect_ui_url
    urls = {"node_url": settings.node_url, "prefect_url": prefect_url}
    return found | {name: url for name, url in urls.items() if url}


def _version() -> str:
    try:
        return version("deepgrid")
    except PackageNotFoundError:
        return ""
