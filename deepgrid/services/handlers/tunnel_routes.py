"""Tunnels into running jobs: the customer opens one, the supervisor of its cluster hears of it, and both connect."""

from __future__ import annotations

from typing import Annotated

from eth_utils.address import to_checksum_address
from fastapi import APIRouter, Depends, Path, Query, WebSocket

from deepgrid.lifecycle.states import JobStatus
from deepgrid.services.context import JobId, Services
from deepgrid.services.core import chain_reads
from deepgrid.services.handlers.authentication import Signed, SignedReader, signed_request
from deepgrid.services.messages import MAX_SMALL_BODY_BYTES, MAX_WAIT_S
from deepgrid.services.refusal import Refusal
from deepgrid.services.tunnels.secure_channel import Invitations, TunnelOpening, TunnelToken

router = APIRouter()
Provider = Annotated[str, Path(pattern=r"^0x[0-9a-fA-F]{40}$")]
SignedShell = Annotated[Signed, Depends(signed_request(MAX_SMALL_BODY_BYTES, "shell"))]


@router.post("/v1/tunnels/{provider}/jobs/{job_id}", status_code=201)
async def open_tunnel(provider: Provider, job_id: JobId, request: SignedShell, context: Services) -> TunnelToken:
    """Open a tunnel into an own running job. The supervisor checks everything again."""
    opening = TunnelOpening.model_validate_json(request.body)
    request.look_up()
    job = await context.job(job_id)
    if job.customer != request.address:
        raise Refusal(403, f"only its customer gets into job {job_id}")
    if job.status is not JobStatus.RUNNING:
        raise Refusal(409, f"job {job_id} is {job.status.words}, not running")
    if job.provider != to_checksum_address(provider) or job.claimed_at != opening.claimed_at:
        raise Refusal(409, f"job {job_id} runs at another provider")
    await request.accept()
    return TunnelToken(token=context.switchboard.invite(job, opening, request.key_hash))


@router.get("/v1/tunnels/{provider}/invitations")
async def invitations(
    provider: Provider, request: SignedReader, context: Services, wait: Annotated[float, Query(ge=0, le=MAX_WAIT_S)] = 0
) -> Invitations:
    """Return what customers opened at this provider, to its supervisor. Waits up to `wait` seconds for something."""
    if request.address != to_checksum_address(provider) or request.session is not None:
        raise Refusal(403, f"only its wallet reads the invitations of {provider}")
    request.look_up()
    with chain_reads():
        if not await context.chain.claimed_jobs(request.address):
            raise Refusal(409, f"{request.address} has no job to get into")
    await request.accept()
    with context.admission.running.lend(request.source):
        return await context.switchboard.invitations(request.address, wait)


@router.websocket("/v1/tunnels/{provider}/ends/{token}")
async def join(socket: WebSocket, provider: str, token: str) -> None:
    """Connect one side of a tunnel. `Gate` has refused unknown tokens."""
    await socket.app.state.context.switchboard.join(token, socket)
