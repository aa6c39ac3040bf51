from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tilestack.__main__ import main

ADD_ONE = """\
cuda_tile.module @m {
  entry @add_one(%x: tile<ptr<f32>>, %n: tile<i32>) {
    %zero = constant <i32: 0> : tile<i32>
    %one = constant <f32: 1.0> : tile<f32>
    %old, %t0 = load_ptr_tko weak %x : tile<ptr<f32>> -> tile<f32>, token
    %new = addf %old, %one : tile<f32>
    %t1 = store_ptr_tko weak %x, %new token=%t0 : tile<ptr<f32>>, tile<f32> -> token
    return
  }
}
"""


class Ran(NamedTuple):
    """The result of a command: its exit code and its output."""

    code: int
    out: str
    err: str


Run = Callable[..., Ran]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command in this process. However busy the machine is, it does not say how far it is meanwhile."""
    for module in ("toolchain.compiling.progress", "tilestack.cli.common.matrix_progress"):
        monkeypatch.setattr(f"{module}.EVERY_S", 1e6)

    def call(*arguments: str | Path) -> Ran:
        words: Sequence[str] = [str(argument) for argument in arguments]
        try:
            code = main(words)
        except SystemExit as exit_:
            code = int(exit_.code or 0)
        shown = capsys.readouterr()
        return Ran(code, shown.out, shown.err)

    return call


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of gelu[f32] from one source, bytecode only. It is compiled once: each compile starts a process."""
    folder = tmp_path_factory.mktemp("gelu")
    words = ["compile", "--source", "mlir", "--op", "gelu", "--dtype", "f32", "--no-targets", "--jobs", "1"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILESTACK_CACHE_DIR", str(folder / "cache"))
        assert main([*words, "--output", str(folder / "bundle")]) == 0
    return folder / "bundle"


@pytest.fixture
def bundle(compiled: Path, tmp_path: Path) -> Path:
    """The test's own copy of it."""
    return shutil.copytree(compiled, tmp_path / "bundle")


@pytest.fixture
def add_one(tmp_path: Path) -> Path:
    """A kernel that adds one to the first element of `x`."""
    path = tmp_path / "add_one.mlir"
    path.write_text(ADD_ONE)
    return path
