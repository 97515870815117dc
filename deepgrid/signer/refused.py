"""Why the signer refuses a call, in the form of JSON-RPC and EIP-1193."""

from __future__ import annotations

NOT_ALLOWED = 4100
NO_SUCH_METHOD = 4200
MALFORMED = -32602
FAILED = -32000
REVERTED = 3


class Refused(Exception):
    """The signer does not sign or send. The text says why, without repeating what the page sent."""

    def __init__(self, sentence: str, code: int = NOT_ALLOWED) -> None:
        super().__init__(sentence)
        self.code = code
