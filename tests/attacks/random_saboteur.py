"""Moves of the random attacker against what the supervisor runs on: processes, descriptors, locks, disks and names.

Each move is a piece of bash that ends by itself within MOST_S seconds, and takes at most 64 MiB, 60 processes, 4,000
descriptors or 2,000 files. The account's processes and its files outside of its job's folder are removed after it.
"""

from __future__ import annotations

import random
from pathlib import Path

MOST_S = 30  # less than a minute: without an epilog, a move that outlives its job may cost one minute less

PROGRAM = """
import ctypes, fcntl, os, signal, socket, stat, sys, time
what, seconds, *rest = sys.argv[1:]
until = time.monotonic() + float(seconds)
kept, written = [], 0
libc = ctypes.CDLL(None)
# Whatever the supervisor or the guard of a script may start. The job's own shell is named slurm_script.
NAMES = {"scancel", "timeout", "sbatch", "setpriv", "find", "rm", "env", "sh", "chmod", "sudo", "squeue", "scontrol"}

def own():
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.stat(f"/proc/{name}").st_uid == os.getuid() and int(name) != os.getpid():
                with open(f"/proc/{name}/comm") as file:
                    yield int(name), file.read().strip()
        except OSError:
            pass

def attempt(call, *arguments):
    try:
        return call(*arguments)
    except OSError:
        return None

def send(number):
    while time.monotonic() < until:
        for pid, name in own():
            if name in NAMES:
                attempt(os.kill, pid, int(number))
        time.sleep(0.01)

def take():
    for pid, _ in own():
        process = libc.syscall(434, pid, 0)  # pidfd_open
        for number in attempt(os.listdir, f"/proc/{pid}/fd") or ():
            taken = libc.syscall(438, process, int(number), 0)  # pidfd_getfd
            if taken >= 0:
                kept.append(taken)
                attempt(fcntl.flock, taken, fcntl.LOCK_EX | fcntl.LOCK_NB)
            opened = attempt(os.open, f"/proc/{pid}/fd/{number}", os.O_RDWR | os.O_NONBLOCK)
            if opened is not None:
                kept.append(opened)
                flood(opened)

def flood(opened):
    global written
    while stat.S_ISFIFO(os.fstat(opened).st_mode) and written < 2**22 and time.monotonic() < until:
        sent = attempt(os.write, opened, b"x" * 65536)
        if not sent:
            return
        written += sent

def lock(*folders):
    names = "lock id account intent ticket limit spare tombstone record output.log run run/unstarted ledger".split()
    for path in [f"{folder}/{name}" for folder in folders for name in ("", *names)]:
        for flags in (os.O_RDONLY, os.O_WRONLY):
            opened = attempt(os.open, path, flags | os.O_NONBLOCK)
            if opened is not None:
                kept.append(opened)
                attempt(fcntl.flock, opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
                attempt(fcntl.lockf, opened, fcntl.LOCK_EX | fcntl.LOCK_NB)

def trace():
    for pid, _ in own():
        libc.ptrace(0x4206, pid, None, None)  # PTRACE_SEIZE and PTRACE_INTERRUPT: stopped until this process ends
        libc.ptrace(0x4207, pid, None, None)

def fork():
    for _ in range(60):
        if os.fork() == 0:
            return

def fill_table():
    for _ in range(4000):
        kept.append(attempt(os.open, "/dev/null", os.O_RDONLY))

def listen():
    for _ in range(200):
        kept.append(attempt(socket.create_server, ("127.0.0.1", 0)))

libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
signal.signal(signal.SIGPIPE, signal.SIG_IGN)
moves = {"signal": send, "take": take, "lock": lock, "trace": trace, "fork": fork, "open": fill_table, "listen": listen}
moves[what](*rest)
time.sleep(max(0, until - time.monotonic()))
"""

# Wait briefly until the supervisor has made the files of the claim.
FUNCTIONS = """sabotage() { /usr/bin/python3 -I -S @PROGRAM@ "$@"; }
await() { local until=$((SECONDS + 20)); until [ -e "$1" ] || ((SECONDS > until)); do sleep 0.05; done; }
"""

LOCKS = "$FOLDER $VICTIM_FOLDER ${FOLDER%/jobs/*}"
MARK, KEPT = "$FOLDER/run/unstarted", "$FOLDER/run/kept"
MOVES = (
    "sabotage signal 5 19", "sabotage signal 15 19", "sabotage signal 5 9", "sabotage signal 15 9",
    "sabotage signal 10 15", "sabotage signal 10 18", "sabotage take 5", "sabotage take 20",
    f"sabotage lock 20 {LOCKS}", "sabotage trace 3", "sabotage trace 15", "sabotage fork 20",
    "sabotage open 20", "sabotage listen 20",
    "head -c 64M /dev/zero > $FOLDER/run/fill", "head -c 64M /dev/zero > /tmp/dg-fill-$UID",
    "head -c 64M /dev/zero > /dev/shm/dg-fill-$UID", "head -c 64M /dev/zero >> $FOLDER/output.log",
    "truncate -s 1T $FOLDER/output.log", "truncate -s 1T $FOLDER/run/fill",
    "mkdir -p $FOLDER/run/many; for i in {1..2000}; do : > $FOLDER/run/many/$i; done",
    "for name in deepgrid{,-$UID,-sbatch} dg-slurm{,-$UID}; do ln -s / /tmp/$name; mkdir /dev/shm/$name; done",
    "for name in shared persistent world-tmp 0 $UID $VICTIM; do mkdir -p /tmp/deepgrid-$UID/$name; done",
    f"ln {MARK} {KEPT}", f"mv {MARK} {KEPT}", f"mv {KEPT} {MARK}", f"mv {MARK} {KEPT}; mv {KEPT} {MARK}",
    f"cp -p /etc/hostname {MARK}", f": > {MARK}; touch -r $FOLDER/tombstone {MARK}", f"ln -s $FOLDER/ticket {MARK}",
    f"ln $VICTIM_FOLDER/run/unstarted {MARK}", f"mv $VICTIM_FOLDER/run/unstarted {MARK}",
    "mv $FOLDER/run $FOLDER/moved", "mv $FOLDER/tombstone $FOLDER/spare", "rm -f $FOLDER/tombstone $FOLDER/ticket",
)  # fmt: skip
# In the job only.
LIMITS = ("ulimit -u 3", "ulimit -n 4", "ulimit -f 0", "ulimit -v 100000", "ulimit -t 3", "umask 777")
# These begin before the job is submitted, so that they meet the guard of its script.
EARLY = (
    f"await {MARK}; sabotage signal 10 19", f"await {MARK}; sabotage signal 10 9", "sabotage signal 30 19",
    f"await {MARK}; sabotage trace 5", f"await {MARK}; mv {MARK} {KEPT}", f"await {MARK}; ln {MARK} {KEPT}",
    f"await {MARK}; mv {MARK} {KEPT}; mv {KEPT} {MARK}", f"await {MARK}; rm -f {MARK}; : > {MARK}",
    f"await {MARK}; sabotage lock 20 {LOCKS}", "sabotage take 20", "sabotage fork 30",
)  # fmt: skip
SEEN = "trap '' TERM; until [ -e $FOLDER/tombstone ]; do read -r -t 0.1 -u 3; done"
ENDINGS = (
    f"{SEEN}; exit 125", f"{SEEN}; mv {KEPT} {MARK}; exit 125", f"{SEEN}; touch {MARK}; exit 125", f"{SEEN}; exit 0",
    f"{SEEN}; sabotage signal 5 9; exit 125", "sabotage trace 20; exit 125", "sabotage fork 20; exit 0",
    "trap '' TERM; sabotage signal 30 19; exit 125",
)  # fmt: skip


def saboteur_in(folder: Path) -> str:
    """Install the program, readable by all accounts. Returns the functions for pieces of bash that use it."""
    program = folder / "saboteur.py"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    return FUNCTIONS.replace("@PROGRAM@", str(program))


def move(chance: random.Random) -> str:
    return chance.choice(MOVES)


def move_in_the_job(chance: random.Random) -> str:
    """Return a move before the payload's next step, or in parallel to it."""
    return chance.choice((*MOVES, *(f"({text}) &" for text in MOVES), *LIMITS))
