"""`nox -s new_op` in a copy of the tree: the tree's own checks then fail, with the instructions of each place."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ci.new_op import MARK, places
from toolchain.knobs import ROOT, toolchain_dir

pytestmark = pytest.mark.needs("toolchain")

COPIED = ("benchmarks", "ci", "conformance", "entries", "gpt", "kernels_mlir", "kernels_py", "tests", "tilestack",
          "toolchain", "tune")  # fmt: skip
LARGE = (ROOT / "benchmarks/results", ROOT / "gpt/checkpoint")  # and not needed


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree in which `relu` was begun."""
    copy = tmp_path_factory.mktemp("tree")
    for folder in COPIED:
        if (ROOT / folder).is_dir():
            shutil.copytree(ROOT / folder, copy / folder, ignore=left_out)
    for path in ROOT.iterdir():
        if path.is_file() and not path.name.startswith("."):
            shutil.copy(path, copy)
    code, said = run(copy, "-m", "ci.new_op", "relu")
    assert code == 0, said
    assert all(place.what in said for place in places())
    assert not (ROOT / "kernels_py/rows/relu.py").exists()
    return copy


def left_out(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if name == "__pycache__" or Path(folder, name) in LARGE]


def run(copy: Path, *words: str) -> tuple[int, str]:
    """A Python command in the copy: its exit code, and all that it said."""
    environment = {**os.environ, "PYTHONPATH": str(copy), "TILESTACK_TOOLCHAIN": str(toolchain_dir())}
    done = subprocess.run(
        [sys.executable, *words], cwd=copy, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout


def run_test(copy: Path, file: str, name: str) -> tuple[int, str]:
    """One test of the copy, by its file and a word of its name."""
    return run(copy, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", f"tests/unit/{file}", "-k", name)


def test_its_tests_name_every_place_that_is_left(copy: Path) -> None:
    code, said = run_test(copy, "ci/test_new_op.py", "unfinished")
    assert code == 1
    for place in places():
        assert f"{MARK}relu): {place.todo.format(name='relu')}" in said, place.what


def test_the_tolerance_fails_its_test(copy: Path) -> None:
    code, said = run_test(copy, "conformance/ops/test_compare.py", "every_op")
    assert code == 1
    assert "tolerances.toml" in said and "op.relu: why is '', not a text" in said


def test_the_kernel_in_mlir_does_not_verify(copy: Path) -> None:
    code, said = run(copy, "-m", "tilestack", "verify", "kernels_mlir/relu.mlir")
    assert code == 3
    assert "kernels_mlir/relu.mlir:5:" in said and "write_the_kernel_here" in said


def test_other_kernels_stay_whole(copy: Path) -> None:
    code, said = run(copy, "-m", "tilestack", "verify", "kernels_mlir/gelu.mlir")
    assert code == 0, said


def test_the_kernel_in_python_does_not_compile(copy: Path, tmp_path: Path) -> None:
    words = ["compile", "--source", "py", "--op", "relu", "--no-targets", "--output", str(tmp_path / "b")]
    code, said = run(copy, "-m", "tilestack", *words)
    assert f"{MARK}relu): write the kernel" in said
    assert code == 3


@pytest.mark.parametrize(("reference", "arguments"), [("float64", "x"), ("eager", "x, dtype='f32'")])
def test_the_references_say_what_to_write(reference: str, arguments: str, copy: Path) -> None:
    program = f"import numpy as np; x = np.zeros(3); import conformance.reference.{reference} as r; r.relu({arguments})"
    code, said = run(copy, "-c", program)
    assert code == 1
    assert f"NotImplementedError: ('{MARK}relu): compute it in" in said
