"""`Account` and `LocalAccount` of eth_account, imported without its BLS curves.

eth_account imports eth_keyfile, which spends 0.2 s of processor time on the BLS12-381 curve. Only keystores of
Ethereum's validators use that curve. It is loaded when one of those is written.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

_BLS12_381_CURVE_ORDER = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001


class _BlsOnDemand:
    """Stands for `py_ecc.bls.G2ProofOfPossession` and imports it when it is used."""

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module("py_ecc.bls").G2ProofOfPossession, name)


@contextlib.contextmanager
def _without_bls_curves() -> Iterator[None]:
    """Replace the two slow modules for the duration of an import, unless they are loaded."""
    contents: dict[str, dict[str, Any]] = {
        "py_ecc.bls": {"G2ProofOfPossession": _BlsOnDemand()},
        "py_ecc.bls12_381": {"curve_order": _BLS12_381_CURVE_ORDER},
    }
    replaced = [name for name in contents if name not in sys.modules]
    for name in replaced:
        sys.modules[name] = ModuleType(name)
        vars(sys.modules[name]).update(contents[name])
    try:
        yield
    finally:
        for name in replaced:
            del sys.modules[name]


# Another version of eth_keyfile may need more of py_ecc. Then the import below loads all of it.
with contextlib.suppress(ImportError), _without_bls_curves():
    importlib.import_module("eth_keyfile")

from eth_account import Account  # noqa: E402
from eth_account.signers.local import LocalAccount  # noqa: E402

__all__ = ["Account", "LocalAccount"]
