"""Reads module files: from folders, and from git repositories at a commit, with a cache per commit.

git runs without prompts, hooks and submodules, only with the transport of the address, and with limits on time and
size.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from deepgrid.files.private_files import replace_file
from deepgrid.modules.children import OutOfTime, run
from deepgrid.modules.reach import ModuleLimits, Reach, Unavailable
from deepgrid.modules.source import Folder, Repository, Source

_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?\Z")
_SHORT_COMMIT = re.compile(r"[0-9a-f]{7,63}\Z")
_EVERYTHING = ("+refs/heads/*:refs/all/heads/*", "+refs/tags/*:refs/all/tags/*")  # names that no commit id can match
_LIMITED = 'ulimit -f "$0" && { [ "$1" = 0 ] || ulimit -v "$1"; } && shift && exec "$@"'
_OPTIONS = (
    "protocol.version=2 core.hooksPath=/dev/null core.fsmonitor=false submodule.recurse=false"
    " fetch.recurseSubmodules=false gc.auto=0 maintenance.auto=false http.lowSpeedLimit=1000 http.lowSpeedTime=20"
    " fetch.unpackLimit=1"  # one pack file, so that the limit on file size applies
)


@dataclass(frozen=True)
class FoundFile:
    """A module file: its text, its name in messages, and its exact source."""

    text: str
    name: str
    source: Source
    commit: str | None = None
    is_newest: bool = False


class ModuleFiles:
    """Reads the modules of one resolution. `until` is its deadline by time.monotonic()."""

    def __init__(self, cache: Path, until: float, limits: ModuleLimits, reach: Reach) -> None:
        self._cache = cache
        self._until = until
        self._limits = limits
        self._reach = reach

    def find(self, source: Source) -> FoundFile:
        """Read the module at `source`. Raises Unavailable."""
        self._reach.require(source)
        if isinstance(source, Folder):
            return FoundFile(_text(_read(source, self._limits.file_bytes), source.file), source.file, source)
        pinned = self._pin(source)
        text = _text(self._content(pinned), source.shown)
        return FoundFile(text, source.shown, pinned, pinned.ref, is_newest=not source.ref)

    def _pin(self, source: Repository) -> Repository:
        """Return the source with its tag, the first digits of a commit, or the newest state replaced by the commit.

        As for git itself, a tag comes before a commit that begins with the same digits. Raises Unavailable.
        """
        if _COMMIT.match(source.ref):
            return source
        wanted = ["HEAD"]
        if source.ref:
            tags = [f"refs/tags/{source.path}/{source.ref}"] if source.path else []
            wanted = [f"{tag}{peeled}" for tag in [*tags, f"refs/tags/{source.ref}"] for peeled in ("^{}", "")]
        lines = [
            line.partition("\t")
            for line in self._git("ls-remote", "--", self._reach.address(source.url), *wanted).splitlines()
        ]
        found = {name: commit for commit, _, name in lines}
        commit = next((found[name] for name in wanted if name in found), None)
        if commit is None and _SHORT_COMMIT.match(source.ref):
            commit = self._full_commit(source)
        if commit is None or not _COMMIT.match(commit):
            missing = f"no tag {source.ref}, and that is no commit id" if source.ref else "no commit yet"
            raise Unavailable(f"{source.url} has {missing}")
        return replace(source, ref=commit)

    def _content(self, source: Repository) -> bytes:
        """Return the module file of a pinned source. Raises Unavailable."""
        key = hashlib.sha256("\0".join((source.url, source.ref, source.file)).encode()).hexdigest()
        with suppress(OSError):
            return (self._cache / key).read_bytes()
        content = self._fetch_archive(source)
        with suppress(OSError):  # works without a cache too
            self._cache.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(self._cache / key, content)
        return content

    def _full_commit(self, source: Repository) -> str:
        """Return the whole id of the commit that begins with the digits of `source.ref`. Raises Unavailable."""
        with self._empty() as at:
            self._git(*_fetch(at), "--", self._reach.address(source.url), *_EVERYTHING)
            try:
                return self._git(at, "rev-parse", "--verify", "--quiet", f"{source.ref}^{{commit}}").strip()
            except Unavailable:
                what = f"no tag {source.ref}, and not exactly one commit that begins so"
                raise Unavailable(f"{source.url} has {what}") from None

    @contextmanager
    def _empty(self) -> Iterator[str]:
        """Yield an empty repository, deleted afterwards: git's option that names it."""
        with tempfile.TemporaryDirectory(prefix="deepgrid-module-") as folder:
            self._git("init", "--quiet", "--bare", "--template=", "--", folder)
            yield f"--git-dir={folder}"

    def _fetch_archive(self, source: Repository) -> bytes:
        address = self._reach.address(source.url)
        with self._empty() as at:
            try:
                self._git(*_fetch(at), "--depth=1", "--", address, source.ref)
            except Unavailable as error:
                if error.transient:  # else the server refuses single commits: fetch everything
                    raise
                self._git(*_fetch(at), "--", address, *_EVERYTHING)
            blob = f"{source.ref}:{source.file}"
            try:
                size = int(self._git(at, "cat-file", "-s", blob))
            except Unavailable:
                raise Unavailable(f"{source.url} has no {source.file} at {source.ref[:12]}") from None
            if size > self._limits.file_bytes:
                raise Unavailable(f"{source.shown} is larger than {self._limits.file_bytes // 1024} KiB")
            return self._git(at, "cat-file", "blob", blob).encode("utf-8", "surrogateescape")

    def _git(self, *words: str) -> str:
        options = [word for option in (*_OPTIONS.split(), *self._reach.options()) for word in ("-c", option)]
        within_s = min(self._limits.fetch_within_s, self._until - time.monotonic())
        # The units of ulimit are 512 bytes for -f and 1,024 for -v. Programs that git starts inherit the limits.
        sizes = [str(self._limits.repository_bytes // 512), str(self._limits.git_memory_bytes // 1024)]
        limited = ["/bin/sh", "-c", _LIMITED, *sizes]
        with tempfile.TemporaryFile() as out:
            try:
                done = run(
                    [*limited, "git", *options, *words], within_s=within_s, env=self._reach.environment(), stdout=out
                )
            except OutOfTime:
                raise Unavailable("git did not answer in time; try again later", transient=True) from None
            if done.returncode != 0:
                raise _git_error(done.returncode, done.stderr.decode(errors="replace"))
            out.seek(0)
            return out.read().decode("utf-8", "surrogateescape")


def _fetch(at: str) -> list[str]:
    return [at, "fetch", "--quiet", "--no-tags", "--no-recurse-submodules"]


def _git_error(status: int, said: str) -> Unavailable:
    if status == 127:
        return Unavailable("git is not installed; modules in repositories need it")
    lines = [line.partition(": ")[2] for line in said.splitlines() if line.startswith(("fatal: ", "error: "))]
    what = "".join(c if c.isprintable() else " " for c in (lines or ["it failed"])[0])[:200]
    network = ("unable to access", "Could not resolve", "Connection", "unable to connect", "timed out", "early EOF")
    return Unavailable(f"git: {what}", transient=any(word in said for word in network))


def default_cache() -> Path:
    """Return the folder of the cache of module files. It may be deleted at any time."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "deepgrid" / "modules"


def _read(source: Folder, most_bytes: int) -> bytes:
    try:
        with open(source.file, "rb") as file:
            content = file.read(most_bytes + 1)
    except OSError as error:
        raise Unavailable(f"{source.file} cannot be read ({error.strerror})") from None
    if len(content) > most_bytes:
        raise Unavailable(f"{source.file} is larger than {most_bytes // 1024} KiB")
    return content


def _text(content: bytes, name: str) -> str:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Unavailable(f"{name} is not UTF-8 text") from None
    if "\0" in text:
        raise Unavailable(f"{name} is not text")
    return text
