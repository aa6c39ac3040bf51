"""Bad input that several commands share, and machines that lack a package."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest

from toolchain.compiling.cubin import is_cubin

from ...conftest import Run


@pytest.mark.parametrize("words", [["generate"], ["matrix", "run"]])
@pytest.mark.parametrize("seed", ["-1", "1.5", "", "x"])
def test_a_seed_is_a_natural_number(run: Run, words: list[str], seed: str) -> None:
    ran = run(*words, f"--seed={seed}")
    assert ran.code == 2 and f"argument --seed: {seed!r} is not an integer from 0" in ran.err and ran.out == ""


def test_an_output_that_is_no_file_is_written_to_and_stays(run: Run, add_one: Path, tmp_path: Path) -> None:
    whole, pipe = tmp_path / "k.tilebc", tmp_path / "pipe"
    assert run("assemble", add_one, "-o", whole).code == 0
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    assert run("assemble", add_one, "-o", pipe) == (0, "", "")
    reader.join(60)
    assert read == [whole.read_bytes()] and pipe.is_fifo()


HOST_PROGRAM = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00\x3e\x00" + bytes(44)
FOR_A_GPU = HOST_PROGRAM.replace(b"\x3e\x00", b"\xbe\x00")


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"no cubin at all", b"\x7fTileIR" + bytes(60), HOST_PROGRAM])
def test_inspect_names_the_file_that_is_no_cubin(run: Run, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "k.cubin"
    path.write_bytes(content)
    ran = run("inspect", path)
    assert ran.code == 2 and f"{path} is not a cubin" in ran.err and ran.out == ""


def test_inspect_has_nothing_to_choose_of_one_cubin(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "k.cubin"
    path.write_bytes(FOR_A_GPU)
    ran = run("inspect", path, "--target", "sm_90", "--op", "gelu")
    assert ran == (2, "", f"error: {path} is one cubin: --target, --op select from a bundle\n")


def test_a_file_for_a_gpu_is_told_by_its_head() -> None:
    assert is_cubin(FOR_A_GPU) and not is_cubin(HOST_PROGRAM)


def test_a_missing_package_is_named_with_what_to_do(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "cuda.tile", None)
    words = ["assemble", "--source", "py", "--entry", "gelu_1024_f32", "-o", tmp_path / "k"]
    ran = run(*words)
    assert ran.code == 4 and "needs cuda.tile" in ran.err and "nox -s build_toolchain" in ran.err
    with pytest.raises(ModuleNotFoundError):
        run("--debug", *words)


def test_a_module_of_ours_that_is_missing_is_a_bug(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def lacks(_: object) -> int:
        raise ModuleNotFoundError(name="toolchain.nothing")

    monkeypatch.setattr("tilestack.cli.doctor.doctor", lacks)
    with pytest.raises(ModuleNotFoundError):
        run("doctor")
