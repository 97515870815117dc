"""Reading the chain does not load curves that no key of the grid uses, and keystores still open."""

from __future__ import annotations

import subprocess
import sys

import pytest

SHOW = "import sys; print([name for name in sys.modules if name.startswith(('py_ecc.bls', 'py_ecc.optimized'))])"
KEYSTORE = """
import eth_keyfile
written = eth_keyfile.create_keyfile_json(bytes(31) + b'\\1', b'password', version=4, iterations=2)
print(eth_keyfile.decode_keyfile_json(written, b'password').hex()[-2:], written['pubkey'][:8])
"""
ORDER = """
from eth_keyfile import keyfile
from py_ecc.bls12_381 import curve_order
print(keyfile.MAX_V4_PRIVATE_KEY == curve_order - 1)
"""
FAILS_ONCE = """
import sys
class FailsOnce:
    def find_spec(self, name, path, target=None):
        if name == "py_ecc.secp256k1":
            sys.meta_path.remove(self)
            raise ImportError(name)
sys.meta_path.insert(0, FailsOnce())
"""


def output_of(program: str) -> str:
    """What a fresh interpreter prints for `program`."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("modules", ["deepgrid.cli.job", "deepgrid.client", "deepgrid.client, web3"])
def test_no_curve_is_loaded_for_reading(modules: str) -> None:
    assert output_of(f"import {modules}\n{SHOW}") == "[]"


def test_a_keystore_that_needs_the_curve_loads_it() -> None:
    expected = "01 97f1d3a7"  # the public key of 1 is the curve's generator
    assert output_of(f"import deepgrid.chain.transactions.wallet{KEYSTORE}") == expected


def test_the_replaced_constant_equals_the_order_of_the_curve() -> None:
    assert output_of(f"import deepgrid.chain.transactions.wallet{ORDER}") == "True"


def test_a_version_of_eth_keyfile_that_needs_more_still_works() -> None:
    assert "py_ecc.bls" in output_of(f"{FAILS_ONCE}import deepgrid.chain.transactions.wallet{ORDER}\n{SHOW}")
