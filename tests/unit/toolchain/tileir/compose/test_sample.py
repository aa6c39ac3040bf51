"""Files of a kernel source at their sample sizes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilestack.cli.common.modules import load
from toolchain.errors import SourceError
from toolchain.knobs import ROOT
from toolchain.tileir.compose.sample import is_kernel_source, sample

KERNELS = sorted((ROOT / "kernels_mlir").glob("*.mlir"))
FRAGMENT = "sizes BN = 8\nfragment @f(%a: tile<BNxf32>) -> tile<BNxf32> {\n  yield %a : tile<BNxf32>\n}\n"


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_every_file_verifies_at_its_sample_sizes(path: Path) -> None:
    assert is_kernel_source(path.read_text())
    kernels = [line.split()[1] for line in path.read_text().splitlines() if line.startswith("kernel @")]
    assert [f"@{name}" for name in sample(path).entries] == kernels


def test_plain_tile_ir_is_no_kernel_source() -> None:
    assert not is_kernel_source("cuda_tile.module @m { entry @k() { return } }")
    assert not is_kernel_source("entry @k() { return }")


def test_a_fragment_is_verified_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "f.mlir"
    path.write_text(FRAGMENT)
    assert not sample(path).entries
    path.write_text(FRAGMENT.replace("  yield", "  %b = permute %a [1] : tile<BNxf32> -> tile<BNxf32>\n  yield"))
    with pytest.raises(SourceError, match=r"f.mlir:3:8: error: permute"):
        sample(path)


def test_a_stray_character_is_said_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "k.mlir").write_text("sizes BN = 8\nkernel @k op = gelu { / }\n")
    with pytest.raises(SourceError, match=r"k\.mlir:2:23: "):
        load(tmp_path / "k.mlir")
