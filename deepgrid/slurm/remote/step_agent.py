"""Runs in a job's own allocation, as its account, and serves the sessions of its customer over its standard streams.

It runs on a node, by the Python that is there (3.7 or later), and needs nothing but its standard library. The text of
`step_streams.py` comes before it. The supervisor starts it with `srun --overlap`. It connects only to ports of the
node's own loopback. It ends when its input ends, and everything that it started ends with it.

Both directions carry frames: the length of the rest (4 bytes), a kind (1 byte), a stream (4 bytes), a content.
`docs/reference/sessions.md` defines them.
"""

import json
import os
import re
import select
import selectors
import signal
import struct
import termios
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from deepgrid.slurm.remote.step_streams import (
        CLOSE,
        DATA,
        EOF,
        EXIT,
        HEAD,
        MOST_STREAMS,
        OPEN,
        RESIZE,
        WINDOW,
        Stream,
        connect,
        leaving,
        send,
        start,
        streams,
        unsent,
        watched,
    )

OF_THE_STEP = (
    r"(DEEPGRID_SLURM_.*|SRUN_DEBUG|SLURM_(STEP.*|NNODES|NTASKS|NPROCS|TASKS_PER_NODE|GTIDS|LOCALID|NODEID|PROCID|TASK_PID"
    r"|CPU_BIND.*|DISTRIBUTION|LAUNCH_NODE_IPADDR|SRUN_COMM_.*|MPI_TYPE|PRIO_PROCESS|UMASK|JOB_NAME|TOPOLOGY_.*))\Z"
)
TICK_S = 1.0  # between looks at all streams, unless a process ends or a stream is about to end
# Every write passes many processes. So what is ready within this time is sent together. It is short: by Nagle's
# algorithm, Slurm's connections hold back further input until something is sent back.
GATHER_S = 0.004
LARGE_WRITE = 8 * 1024  # bytes, which do not wait


def job_environment() -> dict[str, str]:
    """Return the environment of a command. Slurm's variables name the whole job, not the step of this agent, so that
    an `srun` without options starts all tasks of the job.
    """
    environment = {name: text for name, text in os.environ.items() if not re.match(OF_THE_STEP, name)}
    tasks = environment.pop("DEEPGRID_TASKS", "")
    environment.update(SLURM_OVERLAP="1", SLURM_NTASKS=tasks, SLURM_NPROCS=tasks)
    if "SLURM_NODELIST" in environment:
        environment["SLURM_JOB_NODELIST"] = environment["SLURM_NODELIST"]
    return environment


def send_all() -> None:
    """Write all frames at once: small writes one after another would each wait for the network. The supervisor always
    reads.
    """
    rest = memoryview(bytes(unsent))
    unsent.clear()
    while rest:
        try:
            rest = rest[os.write(1, rest) :]
        except BlockingIOError:
            select.select([], [1], [], 1)


def tick(now: float) -> None:
    """Look after streams whose time is over, or whose process has ended."""
    for stream in [*streams.values(), *leaving]:
        stream.tick(now)
    leaving[:] = [one for one in leaving if one.process.poll() is None]


def open_stream(number: int, wanted: dict[str, Any]) -> None:
    stream = streams[number] = Stream(number)
    try:
        if wanted["kind"] == "forward":
            connect(stream, wanted["port"])
        else:
            start(stream, wanted, job_environment())
    except (OSError, ValueError, KeyError, TypeError) as error:
        stream.end({"error": getattr(error, "strerror", None) or str(error) or type(error).__name__, "status": 127})
        return
    stream.watch()


def received(kind: int, number: int, content: bytes) -> None:
    stream = streams.get(number)
    if kind == OPEN:
        if stream is None and len(streams) < MOST_STREAMS:
            open_stream(number, json.loads(content))
    elif stream is None:
        pass  # it ended meanwhile
    elif kind == DATA:
        stream.take(content)
    elif kind == WINDOW:
        stream.credit += struct.unpack("!I", content)[0]
        if stream.ended_at:  # what the command has left in its pipe comes first
            stream.ended_at = time.monotonic()
        stream.watch()
    elif kind == EOF:
        stream.finish_input()
        if stream.waiting:
            stream.flush()
    elif kind == RESIZE:
        stream.resize(*struct.unpack("!HH", content))
    elif kind == CLOSE:
        stream.end({"status": 255})


def prepare() -> int:
    """Watch the input and the ends of processes. Returns the descriptor that tells of the latter."""
    waking, woken = os.pipe()
    for descriptor in (waking, woken, 0):
        os.set_blocking(descriptor, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    if os.isatty(1):  # srun without buffers gives a terminal
        state = termios.tcgetattr(1)
        state[1] &= ~termios.OPOST
        termios.tcsetattr(1, termios.TCSANOW, state)
    watched.register(0, selectors.EVENT_READ, None)
    watched.register(waking, selectors.EVENT_READ, None)
    return waking


def serve() -> None:
    waking = prepare()
    send(EXIT, 0)  # it is ready
    buffered, ticked_at, due = b"", 0.0, 0.0
    while True:
        now = time.monotonic()
        if unsent and (now >= due or len(unsent) > LARGE_WRITE):
            send_all()
        if not unsent:
            due = now + GATHER_S
        busy = any(one.connect_by or one.ended_at or one.hung_up_at for one in (*streams.values(), *leaving))
        for key, events in watched.select(due - now if unsent else 0.1 if busy else 30):
            if key.data is not None:
                if key.fd in key.data.registered:
                    key.data.ready(key.fd, events)
            elif key.fd == waking:
                os.read(waking, 4096)
                ticked_at = 0.0  # a process has ended
            else:
                piece = os.read(0, 65536)
                if not piece:
                    return
                buffered += piece
        while len(buffered) >= HEAD.size:
            size, kind, number = HEAD.unpack_from(buffered)
            if len(buffered) < 4 + size:
                break
            content, buffered = buffered[HEAD.size : 4 + size], buffered[4 + size :]
            received(kind, number, content)
        now = time.monotonic()
        if busy or now - ticked_at > TICK_S:  # each stream costs a system call
            ticked_at = now
            tick(now)


def main() -> None:
    try:
        serve()
    finally:
        ending = [*streams.values(), *leaving]
        for number in (signal.SIGHUP, signal.SIGKILL):
            for stream in ending:
                if stream.process is not None and stream.process.poll() is None:
                    stream.hang_up(number)
            time.sleep(0.2 if number == signal.SIGHUP and ending else 0)


if __name__ == "__main__":
    main()
