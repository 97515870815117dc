"""Imports eth_keyfile in half the time. Import this module before eth_account and web3, which import eth_keyfile.

For keystores of validators, eth_keyfile loads elliptic curves (`py_ecc`), which compute their constants for a third of
a second. Keys of this grid never need them. They are loaded at their first use.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

VALIDATORS_CURVE_ORDER = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001


class _SignaturesLater:
    """The signatures of validators. The first use of an attribute loads the real module."""

    def __getattr__(self, name: str) -> Any:
        from py_ecc.bls.ciphersuites import G2ProofOfPossession

        return getattr(G2ProofOfPossession, name)


_PLACEHOLDERS: dict[str, dict[str, object]] = {
    "py_ecc.bls": {"G2ProofOfPossession": _SignaturesLater()},
    "py_ecc.bls12_381": {"curve_order": VALIDATORS_CURVE_ORDER},
}


def _import_keyfiles() -> None:
    """Import eth_keyfile with placeholders for the slow modules. Later importers get the real ones."""
    for name, values in _PLACEHOLDERS.items():
        placeholder = ModuleType(name)
        placeholder.__dict__.update(values)
        sys.modules[name] = placeholder
    try:
        import eth_keyfile  # noqa: F401 # eth_account finds it loaded
    finally:
        for name in _PLACEHOLDERS:
            del sys.modules[name]


if not _PLACEHOLDERS.keys() & sys.modules.keys():
    _import_keyfiles()
