from __future__ import annotations

import pickle
from types import SimpleNamespace

import pytest

from toolchain.compiling import stages
from toolchain.errors import ToolFailed
from toolchain.tileir import bytecode, text

CODE = b"\x7fTileIR\x00\x0d\x04\x00\x00"


def failed(name: str, code: int) -> ToolFailed:
    return ToolFailed([name, "k.tilebc"], code, "failed to compile Tile IR program\n", version=f"{name} 13.5.37")


@pytest.fixture
def versions(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    found: dict[str, str] = dict.fromkeys(("tileiras", "libnvvm", "ptxas"), "13.5.37")

    def tool(name: str) -> SimpleNamespace:
        return SimpleNamespace(version=found[name])

    monkeypatch.setattr(stages, "tool", tool)
    return found


def test_a_refusal_begins_with_the_pair_that_does_not_fit(versions: dict[str, str]):
    versions["ptxas"] = "13.4.92"
    error = stages.explained(failed("tileiras", 5), "tileiras", CODE, "sm_90")
    assert str(error).startswith("libnvvm 13.5.37 writes PTX that ptxas 13.4.92 is too old to read")
    assert (
        "exited 5 (tileiras 13.5.37)\nfailed to compile" in str(error) and "update_pins" in str(error).splitlines()[-1]
    )
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@pytest.mark.usefixtures("versions")
def test_a_5_without_a_known_cause_says_what_fits():
    error = stages.explained(failed("tileiras", 5), "tileiras", CODE, "sm_90")
    assert str(error).startswith("tileiras cannot compile this for sm_90, and gives no reason; tileiras 13.5.37, ptxas")
    assert error.hint is not None and error.hint.startswith("tilestack doctor")


PADDED = "partition_view<tile=(4), padding_value = neg_inf, tensor_view<3xf8E4M3FN, strides=[1]>>"
REFUSED = f"""
entry @k(%p: tile<ptr<f8E4M3FN>>, %n: tile<i32>) {{
  %array = make_tensor_view %p, shape = [3], strides = [1] : tensor_view<3xf8E4M3FN, strides=[1]>
  %tiles = make_partition_view %array : {PADDED}
  %x, %read = load_view_tko weak %tiles[%n] : {PADDED}, tile<i32> -> tile<4xf8E4M3FN>, token
}}
"""


@pytest.mark.usefixtures("versions")
def test_a_5_for_code_that_the_verifier_refuses_says_why():
    """As a kernel in cuTile may be, which nobody verified."""
    code = bytecode.write(text.parse(REFUSED, filename="k.mlir"), "13.4")
    error = stages.explained(failed("tileiras", 5), "tileiras", code, "sm_90")
    assert "load_view_tko: padding_value = neg_inf is not a value of f8E4M3FN (in @k)" in str(error).splitlines()[0]


@pytest.mark.usefixtures("versions")
def test_an_error_that_explains_itself_stays_as_it_is():
    error = failed("tileiras", 3)
    assert stages.explained(error, "tileiras", CODE, "sm_90") is error
