"""Two builds of real kernels: each from the sources of its own copy, and identical where these are."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from ci.reproduce import __main__ as command
from ci.reproduce import artefacts, building
from toolchain.knobs import toolchain_dir

pytestmark = pytest.mark.needs("toolchain")
SELECTION = ["--entries", "^(mlir|py)/gelu_1024_f32$", "--target", "sm_90"]


def test_a_part_is_identical(tmp_path: Path) -> None:
    words = ["--only", "archive", "--entries", SELECTION[1], "--target", "sm_90", "--output", str(tmp_path / "o")]
    assert command.main(words) == 0
    report = json.loads((tmp_path / "o" / "report.json").read_text())
    kernels, archive = report["artefacts"]
    assert {file["name"] for file in kernels["files"]} == {
        "manifest.json",
        *(f"{source}/gelu_1024_f32.{form}" for source in ("mlir", "py") for form in ("tilebc", "sm_90.cubin")),
    }
    assert [file["name"] for file in archive["files"]] == ["bundle.tar.xz"]
    assert all(file["identical"] for file in (*kernels["files"], *archive["files"]))


def test_each_build_compiles_its_own_copy(tmp_path: Path) -> None:
    python = Path(sys.executable)
    chosen = artefacts.choose(artefacts.load(), ["kernels"])
    with command.prepared(building.commit("HEAD"), tmp_path / "work", python) as (one, two, rows):
        for side in (one, two):
            building.check_sources(side, side.toolchain / python.relative_to(toolchain_dir()))
        kernel = two.checkout / "kernels_mlir" / "gelu.mlir"
        text = kernel.read_text()
        assert "0.5" in text
        kernel.write_text(text.replace("0.5", "0.25", 1))
        made = [command.build(side, chosen, {}, SELECTION, python, tmp_path / "uv") for side in (one, two)]
        result = command.judge(chosen[0], {}, made[0], made[1], rows)
    assert result.status == "differs", result.reason
    assert {file.name for file in result.files if not file.identical} == {
        "manifest.json", "mlir/gelu_1024_f32.tilebc", "mlir/gelu_1024_f32.sm_90.cubin",
    }  # fmt: skip
