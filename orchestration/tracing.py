"""Traces of this process, sent by OTLP: spans of Prefect's runs, with spans of SSH and chain inside them."""

from __future__ import annotations

import os
import threading

from deepgrid.extras import needs
from deepgrid.spans import set_tracer

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
LAST_SPANS_WITHIN_S = 2.0


def start_tracing(service: str) -> None:
    """Send spans to the collector that OpenTelemetry's variables name. Without one, nothing is traced.

    Raises ConfigurationError without OpenTelemetry's SDK.
    """
    if not any(os.environ.get(name) for name in ENDPOINTS):
        return
    with needs("traces"):
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    named = Resource.create({"service.name": service}).merge(OTELResourceDetector().detect())
    provider = TracerProvider(resource=named, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    set_tracer(trace.get_tracer("deepgrid").start_as_current_span)


def send_last_spans() -> None:
    """Send what is left, within seconds. A collector that is away must not delay the end of the process."""
    from opentelemetry import trace  # Prefect's own dependency

    flush = getattr(trace.get_tracer_provider(), "force_flush", None)
    if flush is not None:
        sending = threading.Thread(target=flush, daemon=True)
        sending.start()
        sending.join(LAST_SPANS_WITHIN_S)
