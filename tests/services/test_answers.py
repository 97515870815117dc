"""What an answer to a client means: only the services themselves refuse for good."""

from __future__ import annotations

import httpx
import pytest

from deepgrid.errors import GridError, NotFound, ServiceError
from deepgrid.services.client.answers import Answer, error_of


def error(status: int, body: bytes) -> GridError:
    return error_of(Answer(status, httpx.Headers(), body))


@pytest.mark.parametrize("status", [401, 403, 404, 409, 422])
def test_the_answer_of_a_server_before_the_services_is_no_refusal(status: int) -> None:
    found = error(status, b"<html><h1>nginx</h1></html>")
    assert (type(found), found.transient) == (ServiceError, True)
    assert found.message == f"Another server answered in place of the grid's services (status {status})."


def test_what_the_services_refuse_is_final() -> None:
    found = error(404, b'{"error": "there is no job 7"}')
    assert (type(found), found.transient) == (NotFound, False)
    assert not error(413, b"<html>too large</html>").transient
