"""A run gets the session of its own process only: a supervisor refuses the name of another cluster."""

from __future__ import annotations

from typing import cast

import pytest

from deepgrid.errors import InputError, SlurmUnreachable
from deepgrid.provider.session import ProviderSession
from orchestration import sessions


class Session:
    """What `serving_provider` reads of a session."""

    class settings:
        cluster = "alpha"


SESSION = cast(ProviderSession, Session())


async def test_a_supervisor_refuses_the_name_of_another_cluster() -> None:
    async with sessions.serving_provider(SESSION):
        async with sessions.provider("alpha") as session:
            assert session is SESSION
        for another in (sessions.provider("beta"), sessions.operator("grid"), sessions.chain_of(None, "beta")):
            with pytest.raises(InputError, match="This process serves alpha, not (beta|grid)."):
                async with another:
                    pass


async def test_an_error_of_a_run_names_the_doctor() -> None:
    async with sessions.serving_provider(SESSION):
        with pytest.raises(SlurmUnreachable) as raised:
            async with sessions.provider("alpha"):
                raise SlurmUnreachable("The login node n1:22 cannot be reached.")
    assert str(raised.value) == "The login node n1:22 cannot be reached. Run `dps provider doctor alpha`."


async def test_a_run_that_reads_the_chain_names_one_block() -> None:
    for names in ((None, None), ("grid", "alpha")):
        with pytest.raises(InputError, match="The run needs one name"):
            async with sessions.chain_of(*names):
                pass
