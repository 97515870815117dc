"""Runs a long-lived process. The event loop has its own thread, and the main thread handles signals.

Prefect's engine replaces the SIGTERM handler for every flow run in a main thread. A process with many concurrent runs
would then ignore the signal. So flows never run in the main thread.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import NoReturn

import uvloop

from orchestration.prefect_internals import drain_queues
from orchestration.run_logs import silence_ordinary_ends
from orchestration.tracing import send_last_spans

DRAIN_TIMEOUT_S = 3.0


def serve_until_signalled(serve: Callable[[], Awaitable[None]]) -> None:
    """Run `serve` until it ends, or until SIGTERM or SIGINT cancels it. Raises the errors of `serve`."""
    failures: list[BaseException] = []
    started = threading.Event()
    loop = uvloop.new_event_loop()
    main: list[asyncio.Task[None]] = []

    async def body() -> None:
        await serve()

    def run() -> None:
        asyncio.set_event_loop(loop)
        main.append(loop.create_task(body()))
        started.set()
        try:
            loop.run_until_complete(main[0])
        except asyncio.CancelledError:
            pass
        except BaseException as error:  # the main thread raises it below
            failures.append(error)
        finally:
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()

    def stop(*_: object) -> None:
        silence_ordinary_ends()
        if not loop.is_closed():
            loop.call_soon_threadsafe(main[0].cancel)

    thread = threading.Thread(target=run, name="event-loop")
    thread.start()
    started.wait()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    while thread.is_alive():
        thread.join(timeout=0.5)
    if failures:
        raise failures[0]


def leave(status: int = 0) -> NoReturn:
    """End the process with this status, within seconds.

    Otherwise Python would wait until Prefect's queues of log lines and events are empty. While its server is down, each
    entry takes seconds. Only entries for the UI are lost.
    """
    drain_queues(DRAIN_TIMEOUT_S)
    send_last_spans()
    logging.shutdown()
    sys.stdout.flush()
    os._exit(status)
