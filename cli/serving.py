"""What the verbs that serve share: a log on standard error, a Prefect server that is there, an end by signal."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar, cast

from deepgrid.errors import ConfigurationError, ServiceError

if TYPE_CHECKING:
    from prefect.blocks.core import Block

B = TypeVar("B", bound="Block")
CHATTY = ("httpx", "httpcore", "paramiko", "uvicorn.access", "aiosqlite")


def start_logging() -> None:
    """Log what happens, one line each, without the chatter of libraries."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", force=True)
    for name in CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)


def serve(block: type[Block], name: str, body: Callable[[str], Awaitable[None]]) -> None:
    """Run the role that the block `name` configures until SIGTERM or SIGINT.

    Raises ConfigurationError without a Prefect server or such a block, ServiceError when Prefect does not answer.
    """
    from deployments.service import serve_until_signalled

    require_prefect()

    async def role() -> None:
        await load_block(block, name)
        await body(name)

    start_logging()
    serve_until_signalled(role)


def require_prefect() -> None:
    """Raise ConfigurationError when no server is set: Prefect would start one that knows nothing of this grid."""
    from prefect.settings import PREFECT_API_URL

    if not PREFECT_API_URL.value():
        raise ConfigurationError(
            "No Prefect server is configured.", next_step="Set PREFECT_API_URL, such as http://127.0.0.1:4200/api."
        )


async def load_block(block: type[B], name: str) -> B:
    """The block. Raises ConfigurationError when there is none, ServiceError when Prefect does not answer."""
    import httpx
    from prefect.settings import PREFECT_API_URL

    try:
        return cast("B", await block.aload(name))
    except ValueError:
        kind = block.get_block_type_slug()
        raise ConfigurationError(
            f"Prefect has no block {kind}/{name}.",
            next_step="Create it in the Prefect UI, after `prefect block register -m blocks`.",
        ) from None
    except httpx.HTTPError:
        raise ServiceError(f"The Prefect server at {PREFECT_API_URL.value()} does not answer.") from None
