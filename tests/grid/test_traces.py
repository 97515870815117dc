"""A supervisor sends the trace of a job to a real OTLP receiver: its run, with spans of SSH and chain."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from deployments.onemachine.clusters import OFFERS
from tests.grid.customer import PATIENCE_S, Customer
from tests.grid.support import steps

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

SUPERVISOR = f"supervisor-{OFFERS[0].name}"


class Collector:
    """Spans that arrived, and the names of the services that sent them."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.services: set[str] = set()
        self.url = ""

    async def take(self, request: web.Request) -> web.Response:
        for resource in ExportTraceServiceRequest.FromString(await request.read()).resource_spans:
            named = {one.key: one.value.string_value for one in resource.resource.attributes}
            self.services.add(named["service.name"])
            self.spans += [span for scope in resource.scope_spans for span in scope.spans]
        return web.Response()

    def trace_of(self, run_name: str) -> set[str]:
        """Return the names of all spans in the trace of this run; empty while it has not ended."""
        traces = {span.trace_id for span in self.spans if span.name == run_name}
        return {span.name for span in self.spans if span.trace_id in traces}


@pytest.fixture
async def collector() -> AsyncIterator[Collector]:
    collector, pages = Collector(), web.Application()
    pages.router.add_post("/v1/traces", collector.take)
    runner = web.AppRunner(pages)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    (address,) = runner.addresses
    collector.url = f"http://127.0.0.1:{address[1]}"
    yield collector
    await runner.cleanup()


async def test_the_trace_of_a_job_has_its_run_ssh_and_chain(customer: Customer, collector: Collector) -> None:
    grid = customer.grid
    traced = grid.roles.supervisor(OFFERS[0])
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_BSP_SCHEDULE_DELAY": "500"}
    await asyncio.to_thread(grid.table.stop, SUPERVISOR)
    try:
        daemon = dataclasses.replace(traced, env={**traced.env, **variables})
        await asyncio.to_thread(grid.table.start, daemon)
        await asyncio.to_thread(grid.table.wait_ready, daemon)
        job_id = customer.submit(steps("true"), f"name={OFFERS[0].name}")
        async with asyncio.timeout(PATIENCE_S):
            while not collector.trace_of(f"job {job_id} on {OFFERS[0].name}"):
                await asyncio.sleep(0.5)
    finally:
        await asyncio.to_thread(grid.table.stop, SUPERVISOR)
        await asyncio.to_thread(grid.start, SUPERVISOR)
    names = collector.trace_of(f"job {job_id} on {OFFERS[0].name}")
    calls = {call for name in names for call in name.split(", ")}
    assert {"eth_call", f"settle job {job_id} as finished on {OFFERS[0].name}"} <= calls
    assert any(name.startswith("ssh ") for name in names), names
    assert collector.services == {f"deepgrid-{OFFERS[0].name}"}
