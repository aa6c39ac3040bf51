"""A kernel in text, and the entry of its module."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import kernels_mlir
from tests.unit.cute_runtime.conftest import gpu
from tilestack.api.launches import gpu as long_way
from toolchain.bundles import bundle
from toolchain.tileir import text
from toolchain.tileir.dialect.control import EntryOp

from .fake_torch import FakeTorch

__all__ = ["gpu"]  # a fixture

# Rows of x, scaled and added to y, to out; each array as pointer, sizes, strides.
SCALED = """\
!int = !cuda_tile.tile<i32>
!array = !cuda_tile.tensor_view<?x?xf32, strides=[?,1]>
!tiles = !cuda_tile.partition_view<tile=(1x8), padding_value = zero, !array>
!row = !cuda_tile.tile<1x8xf32>
entry @scaled(
  %x: tile<ptr<f32>>, %x_m: !int, %x_n: !int, %x_row: !int, %x_unit: !int, %factor: tile<f32>,
  %out: tile<ptr<f32>>, %out_m: !int, %out_n: !int, %out_row: !int, %out_unit: !int
) {
  %m, %y, %z = get_tile_block_id : !int
  %zero = constant <i32: 0> : !int
  %x_array = make_tensor_view %x, shape = [%x_m, %x_n], strides = [%x_row, 1] : !int -> !array
  %x_tiles = make_partition_view %x_array : !tiles
  %row, %read = load_view_tko weak %x_tiles[%m, %zero] : !tiles, !int -> !row, token
  %one = reshape %factor : tile<f32> -> tile<1x1xf32>
  %all = broadcast %one : tile<1x1xf32> -> !row
  %result = mulf %row, %all : !row
  %out_array = make_tensor_view %out, shape = [%out_m, %out_n], strides = [%out_row, 1] : !int -> !array
  %out_tiles = make_partition_view %out_array : !tiles
  %stored = store_view_tko weak %result, %out_tiles[%m, %zero] : !row, !tiles, !int -> token
  return
}
"""


@pytest.fixture
def scaled(tmp_path: Path) -> Path:
    path = tmp_path / "scaled.mlir"
    path.write_text(SCALED)
    return path


def entry_of(source: str) -> EntryOp:
    """The only entry of a text."""
    (module,) = text.parse_all(source, filename="test.mlir")
    (entry,) = module.entries.values()
    return entry


@pytest.fixture(scope="session")
def gelu_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of two entries of the source `mlir`, without cubins."""
    specs = [s for s in kernels_mlir.SOURCE.entries() if s.symbol in ("gelu_1024_f32", "gelu_any_f32")]
    folder = tmp_path_factory.mktemp("api") / "bundle"
    return bundle.write(folder, [bundle.Compiled(s, kernels_mlir.SOURCE.artifact(s), {}) for s in specs], {}).root


@pytest.fixture
def fake_torch(monkeypatch: pytest.MonkeyPatch) -> FakeTorch:
    module = FakeTorch(stream=7)
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The symbol of each launch on a GPU that was not the repetition of one before."""
    found: list[str] = []
    launch = long_way.launch

    def counted(code: Any, *args: Any) -> None:
        found.append(code.symbol)
        launch(code, *args)

    monkeypatch.setattr(long_way, "launch", counted)
    return found
