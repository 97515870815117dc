"""The names of eth_account that deepgrid uses."""

from __future__ import annotations

import deepgrid.chain.node.light_keyfiles  # noqa: F401 # before eth_account, which it makes load faster

from eth_account import Account  # isort: skip
from eth_account.messages import SignableMessage, encode_defunct, encode_typed_data  # isort: skip
from eth_account.signers.local import LocalAccount  # isort: skip

__all__ = ["Account", "LocalAccount", "SignableMessage", "encode_defunct", "encode_typed_data"]
