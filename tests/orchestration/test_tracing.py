"""Spans of SSH commands are inside the current span and have only the program's name.

Without a tracer there are none.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from deepgrid import spans
from deepgrid.errors import ConfigurationError
from deepgrid.slurm.ssh.channel import CommandResult
from deepgrid.slurm.ssh.login import MeteredLogin
from orchestration.tracing import ENDPOINTS, start_tracing


class Answering:
    """A login whose commands do nothing."""

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: float | None = None) -> CommandResult:
        return CommandResult(0, b"", b"")

    async def close(self) -> None: ...


@pytest.fixture
def provider() -> Iterator[TracerProvider]:
    yield TracerProvider()
    spans.set_tracer(None)


async def test_a_command_is_a_span_without_its_arguments(provider: TracerProvider) -> None:
    kept = InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    tracer = provider.get_tracer("deepgrid")
    spans.set_tracer(tracer.start_as_current_span)
    with tracer.start_as_current_span("job 1"):
        await MeteredLogin(Answering(), lambda _: None).run(["/usr/bin/sbatch", "--comment=secret"])
    command, job = kept.get_finished_spans()
    assert (command.name, command.attributes) == ("ssh sbatch", {})
    assert command.parent is not None and job.context is not None
    assert command.parent.span_id == job.context.span_id


def test_without_a_collector_nothing_is_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ENDPOINTS:
        monkeypatch.delenv(name, raising=False)
    start_tracing("deepgrid-test")
    assert isinstance(spans.span("ssh sbatch"), nullcontext)


def test_a_missing_sdk_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENDPOINTS[0], "http://127.0.0.1:9")
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(ConfigurationError) as refused:
        start_tracing("deepgrid-test")
    assert "deepgrid[traces]" in refused.value.next_step
