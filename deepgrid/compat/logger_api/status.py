"""How a call ends other than well: a gRPC status and a sentence."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from grpclib import GRPCError, Status
from grpclib.metadata import decode_timeout
from sqlalchemy.exc import SQLAlchemyError

from deepgrid.errors import GridError
from deepgrid.services.refusal import Refusal

# 403 too: a stranger's call has a valid signature, but not of the one whose log it is.
CODES = {
    401: Status.UNAUTHENTICATED,
    403: Status.UNAUTHENTICATED,
    404: Status.NOT_FOUND,
    429: Status.RESOURCE_EXHAUSTED,
    503: Status.UNAVAILABLE,
}

logger = logging.getLogger(__name__)


def invalid(sentence: str) -> GRPCError:
    """The error of a malformed request."""
    return GRPCError(Status.INVALID_ARGUMENT, sentence)


def service_stops() -> GRPCError:
    """The end of all calls when the service stops."""
    return GRPCError(Status.UNAVAILABLE, "the service stops")


def stream_is_over(longest_s: float) -> GRPCError:
    """The end of a stream that lasted for the longest time."""
    return GRPCError(Status.UNAVAILABLE, f"a stream ends after {longest_s / 3600:.0f} h; open it again")


def time_is_over() -> GRPCError:
    """The end of a call whose `grpc-timeout` is over."""
    return GRPCError(Status.DEADLINE_EXCEEDED, "the call's own time limit is over")


def seconds_of(timeout: str | None) -> float:
    """The header `grpc-timeout` in seconds; infinite without one. Raises GRPCError."""
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
    except Refusal as refusal:
        raise GRPCError(CODES.get(refusal.status, Status.INTERNAL), refusal.sentence) from None
    except SQLAlchemyError as error:
        logger.error("the database failed: %s", type(error).__name__)
        raise GRPCError(Status.UNAVAILABLE, "the service's store does not answer at the moment") from None
    except GridError as error:
        if error.transient:
            raise GRPCError(Status.UNAVAILABLE, error.message) from None
        logger.error("a request failed: %s", error.message)
        raise GRPCError(Status.INTERNAL, "the service is not configured correctly") from None
    except Exception as error:
        logger.error("a stream of a log failed: %s", type(error).__name__)
        raise GRPCError(Status.INTERNAL, f"the service failed ({type(error).__name__})") from None
