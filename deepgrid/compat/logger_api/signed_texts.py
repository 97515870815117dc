"""The signature of a request: an EIP-191 personal signature of a short text that names address, log and time.

The text holds no nonce. A request may be sent again for ten minutes, so it must stay secret on its way.
"""

from __future__ import annotations

import re

from eth_account.messages import encode_defunct
from eth_utils.address import to_checksum_address
from grpclib import GRPCError, Status

from deepgrid.compat.logger_api.logger_pb2 import ReadRequest, WatchListRequest
from deepgrid.services.signing.signatures import BadRequestSignature, signer_of

WINDOW_S = 600
MILLISECONDS_FROM = 10**11  # as seconds this is the year 5138, as milliseconds 1973

ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
RECOVERY_IDS = {0: 27, 1: 28, 27: 27, 28: 28}


def reader_of(request: ReadRequest, now: int) -> str:
    """The address that signed, with checksum. Raises GRPCError UNAUTHENTICATED unless it is that of the request."""
    text = f"read:{request.address.lower()}/{request.log_name}/{request.timestamp}"
    return _verified([text], request, now)


def watcher_of(request: WatchListRequest, now: int) -> str:
    """As `reader_of`. Takes the address in the text in lower case and as sent."""
    addresses = (request.address.lower(), request.address)
    return _verified([f"watchList:{address}/{request.timestamp}" for address in addresses], request, now)


def _verified(texts: list[str], request: ReadRequest | WatchListRequest, now: int) -> str:
    if not ADDRESS.fullmatch(request.address):
        raise _refused("the address must be 0x and 40 hex digits")
    if len(request.signed_hash) != 65 or request.signed_hash[64] not in RECOVERY_IDS:
        raise _refused("the signature must have 65 bytes: r, s, and v of 0, 1, 27 or 28")
    signed_at = request.timestamp // (1000 if request.timestamp >= MILLISECONDS_FROM else 1)
    if abs(now - signed_at) > WINDOW_S:
        raise _refused(f"the request was signed more than {WINDOW_S} s off the service's clock")
    signature = request.signed_hash[:64] + bytes([RECOVERY_IDS[request.signed_hash[64]]])
    address = str(to_checksum_address(request.address))
    try:
        if any(signer_of(encode_defunct(text=text), signature) == address for text in texts):
            return address
    except BadRequestSignature as fault:
        raise _refused(str(fault)) from None
    raise _refused("the signature is not one of this request by this address")


def _refused(sentence: str) -> GRPCError:
    return GRPCError(Status.UNAUTHENTICATED, sentence)
