"""How a call ends other than well: a gRPC status and a sentence."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager

from grpc import StatusCode
from sqlalchemy.exc import SQLAlchemyError

from deepgrid.errors import GridError
from deepgrid.services.refusal import Refusal

# 403 too: a stranger's call has a valid signature, but not of the one whose log it is.
CODES = {
    401: StatusCode.UNAUTHENTICATED,
    403: StatusCode.UNAUTHENTICATED,
    404: StatusCode.NOT_FOUND,
    429: StatusCode.RESOURCE_EXHAUSTED,
    503: StatusCode.UNAVAILABLE,
}
TIMEOUT = re.compile(r"([0-9]{1,8})([HMSmun])")
SECONDS = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}
BLAMED = frozenset({StatusCode.UNAUTHENTICATED, StatusCode.NOT_FOUND, StatusCode.INVALID_ARGUMENT})

logger = logging.getLogger(__name__)


class GrpcError(Exception):
    """The end of a call: `code` and a sentence for the caller."""

    def __init__(self, code: StatusCode, sentence: str) -> None:
        super().__init__(sentence)
        self.code, self.sentence = code, sentence


def invalid(sentence: str) -> GrpcError:
    """The error of a malformed request."""
    return GrpcError(StatusCode.INVALID_ARGUMENT, sentence)


def service_stops() -> GrpcError:
    """The end of all calls when the service stops."""
    return GrpcError(StatusCode.UNAVAILABLE, "the service stops")


def stream_is_over(longest_s: float) -> GrpcError:
    """The end of a stream that lasted for the longest time."""
    return GrpcError(StatusCode.UNAVAILABLE, f"a stream ends after {longest_s / 3600:.0f} h; open it again")


def time_is_over() -> GrpcError:
    """The end of a call whose `grpc-timeout` is over."""
    return GrpcError(StatusCode.DEADLINE_EXCEEDED, "the call's own time limit is over")


def seconds_of(timeout: str | None) -> float:
    """The header `grpc-timeout` in seconds; infinite without one. Raises GrpcError."""
    if timeout is None:
        return float("inf")
    found = TIMEOUT.fullmatch(timeout)
    if found is None:
        raise invalid("grpc-timeout must be up to 8 digits and one of H, M, S, m, u, n")
    return int(found[1]) * SECONDS[found[2]]


@contextmanager
def as_grpc_errors() -> Iterator[None]:
    """Turn every failure into a GrpcError, without a traceback in the log."""
    try:
        yield
    except GrpcError:
        raise
    except Refusal as refusal:
        raise GrpcError(CODES.get(refusal.status, StatusCode.INTERNAL), refusal.sentence) from None
    except SQLAlchemyError as error:
        logger.error("the database failed: %s", type(error).__name__)
        raise GrpcError(StatusCode.UNAVAILABLE, "the service's store does not answer at the moment") from None
    except GridError as error:
        if error.transient:
            raise GrpcError(StatusCode.UNAVAILABLE, error.message) from None
        logger.error("a request failed: %s", error.message)
        raise GrpcError(StatusCode.INTERNAL, "the service is not configured correctly") from None
    except Exception as error:
        logger.error("a stream of a log failed: %s", type(error).__name__)
        raise GrpcError(StatusCode.INTERNAL, f"the service failed ({type(error).__name__})") from None
