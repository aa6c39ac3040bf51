"""The programs of docs/cute-runtime.md run, over drivers that record."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from cute_runtime.export.header import Export, choose
from toolchain.bundles.bundle import Compiled, write
from toolchain.contract.artifact import tile_ir
from toolchain.contract.entry import EntrySpec
from toolchain.knobs import ROOT

from .fake import FakeGPU

TEXT = (ROOT / "docs" / "cute-runtime.md").read_text()


def programs(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


@pytest.mark.needs("toolchain")
def test_python(
    gpu: FakeGPU, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (program,) = programs("python")
    gpu.sizes = (8, 4, 4)
    monkeypatch.chdir(tmp_path)
    exec(program, {})
    assert len(gpu.launched) == 1
    assert capsys.readouterr().out == "[1. 2. 3.]\n"  # the fake GPU computes nothing


@pytest.mark.needs("g++")
def test_cpp(build: Callable[..., Path], driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scale, bundled = programs("cpp")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scale.cubin").write_bytes(b"params 8 4 4\0")
    (tmp_path / "scale.cpp").write_text(scale)
    assert "launch scale grid 1,1,1 block 128,1,1" in driver.run(build(tmp_path / "scale.cpp"))
    spec = EntrySpec("gelu_f32", "gelu", "mlir", "f32", grid=("M", "1", "1"))
    cubin = b"params 8 4 4 4 4 8 4 4 4 4\0"
    bundle = write(tmp_path / "build/bundle", [Compiled(spec, tile_ir(b"", "13.4"), {"sm_90": cubin})], {})
    source, target, entries = choose(bundle, None, None, (), ())
    (tmp_path / "kernels.hpp").write_text(
        Export(bundle, source, target, entries, "tilestack_kernels", embed=False).text()
    )
    (tmp_path / "bundled.cpp").write_text(bundled)
    assert "launch gelu_f32 grid 64,1,1 block 1,1,1" in driver.run(build(tmp_path / "bundled.cpp"))
