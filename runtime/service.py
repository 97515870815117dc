"""Runs a long-lived process: its event loop in a thread of its own, signals in the main thread.

Prefect's engine takes over SIGTERM for every flow run that it executes in a main thread; in a
process that runs many flows at once that would leave the process deaf. So no flow runs there.
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
from prefect.events.worker import EventsWorker
from prefect.logging.handlers import APILogWorker

LAST_WORDS_S = 3.0


def serve_until_signalled(serve: Callable[[], Awaitable[None]]) -> None:
    """Run `serve` until it ends, or until SIGTERM or SIGINT cancels it.

    Raises whatever `serve` raised.
    """
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
        except BaseException as error:  # handed to the main thread below
            failures.append(error)
        finally:
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()

    def stop(*_: object) -> None:
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


def leave() -> NoReturn:
    """End the process with status 0, within seconds.

    Python would wait until Prefect's queues of log lines and events are empty; while its server is away each entry
    takes seconds. What is lost is a remark in the UI.
    """
    for queue in (APILogWorker, EventsWorker):
        queue.drain_all(timeout=LAST_WORDS_S)
    logging.shutdown()
    sys.stdout.flush()
    os._exit(0)
