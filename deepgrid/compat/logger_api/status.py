"""Failed ends of calls: a gRPC status and a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from grpclib import GRPCError, Status
from grpclib.metadata import decode_timeout

from deepgrid.services.core import as_refusal

# 403 too: a stranger's call has a valid signature, but not of the one whose log it is.
CODES = {
    401: Status.UNAUTHENTICATED,
    403: Status.UNAUTHENTICATED,
    404: Status.NOT_FOUND,
    429: Status.RESOURCE_EXHAUSTED,
    503: Status.UNAVAILABLE,
}


def invalid(sentence: str) -> GRPCError:
    """Return the error of a malformed request."""
    return GRPCError(Status.INVALID_ARGUMENT, sentence)


def service_stops() -> GRPCError:
    """Return the end of all calls when the service stops."""
    return GRPCError(Status.UNAVAILABLE, "the service stops")


def stream_is_over(longest_s: float) -> GRPCError:
    """Return the end of a stream that lasted for the longest time."""
    return GRPCError(Status.UNAVAILABLE, f"a stream ends after {longest_s / 3600:.0f} h; open it again")


def seconds_of(timeout: str | None) -> float:
    """Return the header `grpc-timeout` in seconds; infinite without one. Raises GRPCError."""
    try:
        return float("inf") if timeout is None else float(decode_timeout(timeout))
    except (ValueError, OverflowError):
        raise invalid("grpc-timeout must be a number and one of H, M, S, m, u, n") from None


@contextmanager
def as_grpc_errors() -> Iterator[None]:
    """Turn every failure into a GRPCError, without a traceback in the log."""
    try:
        yield
    except GRPCError:
        raise
    except Exception as error:
        refusal = as_refusal(error)
        raise GRPCError(CODES.get(refusal.status, Status.INTERNAL), refusal.sentence) from None
