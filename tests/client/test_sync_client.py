"""The generator of the sync classes: what becomes of each form of method."""

from __future__ import annotations

import ast
import textwrap

import pytest

from tools.sync_client.classes import class_text
from tools.sync_client.values import words

ASYNC = '''
class AsyncJob:
    """An `AsyncJob`.

    Attributes:
        parameters: What it was given.
    """

    def __init__(self, connection: Connection, parameters: dict[str, int]) -> None:
        self._connection = connection
        self.parameters = parameters

    # -- reading -----

{body}
'''


def _turned(body: str) -> str:
    text = ASYNC.format(body=textwrap.indent(textwrap.dedent(body).strip(), "    "))
    node = ast.parse(text).body[0]
    assert isinstance(node, ast.ClassDef)
    return class_text(node, text.splitlines())


@pytest.mark.parametrize(
    ("written", "becomes"),
    [
        ("async def f(self, a: int, *, b: int) -> AsyncJob: ...", "return Job._of(self._run(self._async.f(a, b=b)))"),
        ("async def f(self) -> None: ...", "self._run(self._async.f())"),
        ("async def f(self) -> Self: ...", "return type(self)._of(self._run(self._async.f()))"),
        ("async def f(self) -> list[AsyncJob]: ...", "return [Job._of(one) for one in self._run(self._async.f())]"),
        (
            "async def f(self) -> tuple[AsyncJob, ...]: ...",
            "return tuple(Job._of(one) for one in self._run(self._async.f()))",
        ),
        (
            "async def f(self) -> AsyncJob | None: ...",
            "return None if (one := self._run(self._async.f())) is None else Job._of(one)",
        ),
        ("def f(self) -> int: ...", "return self._async.f()"),
        ("def f(self) -> AsyncIterator[int]: ...", "return self._iterate(self._async.f())"),
        ("def __iter__(self) -> Iterator[AsyncJob]: ...", "return (Job._of(one) for one in self._async.__iter__())"),
        ("def __len__(self) -> int: ...", "return self._async.__len__()"),
        ("def _repr_html_(self) -> str: ...", "return self._async._repr_html_()"),
        ("async def f(self, job: AsyncJob, *a: int, **b: int) -> None: ...", "self._async.f(job._async, *a, **b)"),
        ("async def f(self, jobs: Sequence[AsyncJob]) -> None: ...", "self._async.f([one._async for one in jobs])"),
        ("@property\nasync def f(self) -> int: ...", "return self._run(self._async.f)"),
        ("@classmethod\ndef f(cls, a: int) -> Self: ...", "return cls._of(AsyncJob.f(a))"),
        ("async def close(self) -> None: ...", "self._close(self._async.close())"),
        ("async def __aenter__(self) -> Self: ...", "def __enter__(self) -> Self:"),
        ("@overload\ndef f(self, at: int) -> AsyncJob: ...", "@overload\n    def f(self, at: int) -> Job:\n"),
    ],
)  # fmt: skip
def test_each_form_of_method(written: str, becomes: str) -> None:
    assert becomes in _turned(written)


def test_attributes_become_properties_and_sections_stay() -> None:
    text = _turned("async def f(self) -> None: ...")
    assert 'def parameters(self) -> dict[str, int]:\n        """What it was given."""' in text
    assert "    # -- reading -----\n\n    def f(self) -> None:" in text
    assert text.splitlines()[1] == '    """A `Job`.'


@pytest.mark.parametrize("hidden", ["def _f(self) -> None: ...", "async def f(self, one: Connection) -> None: ..."])
def test_what_is_not_for_callers_is_left_out(hidden: str) -> None:
    assert "_async._f" not in _turned(hidden)
    assert "_async.f" not in _turned(hidden)


@pytest.mark.parametrize(
    "unknown",
    [
        "async def f(self) -> dict[str, tuple[AsyncJob, int]]: ...",
        "async def f(self, done: Callable[[AsyncJob], None]) -> None: ...",
        "@classmethod\nasync def f(cls) -> Self: ...",
    ],
)
def test_a_form_without_a_rule_is_named(unknown: str) -> None:
    with pytest.raises(SystemExit, match="No rule|no sync form"):
        _turned(unknown)


def test_docstrings_lose_await_and_async() -> None:
    text = "Example:\n    async with AsyncGrid() as grid:\n        async for line in (await grid.job(7)).logs(): ..."
    assert words(text) == "Example:\n    with Grid() as grid:\n        for line in (grid.job(7)).logs(): ..."
    assert words("An `AsyncJob` of an AsyncJobSet.") == "A `Job` of a JobSet."
