"""`-` in the place of a file: standard input where one is read, standard output where one is written."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from toolchain.bundles.archive import pack
from toolchain.bundles.bundle import Bundle
from toolchain.knobs import ROOT

from .conftest import Run

Give = Callable[[bytes], None]
GELU = ROOT / "kernels_mlir" / "gelu.mlir"


@pytest.fixture
def give(monkeypatch: pytest.MonkeyPatch) -> Give:
    """Puts bytes on standard input."""

    def call(data: bytes) -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))

    return call


def piped(*words: str | Path, data: bytes) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "tilestack", *map(str, words)]
    return subprocess.run(command, cwd=ROOT, input=data, capture_output=True, check=False)


def test_text_to_bytecode_to_text(add_one: Path) -> None:
    code = piped("assemble", "-", data=add_one.read_bytes())
    assert code.returncode == 0 and code.stdout.startswith(b"\x7fTileIR")
    text = piped("disassemble", "-", "-o", "-", data=code.stdout)
    assert text.returncode == 0 and b"addf" in text.stdout
    assert piped("assemble", "-", "-o", "-", data=text.stdout).stdout == code.stdout


def test_interpret_reads_and_saves(run: Run, add_one: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([41.0], np.float32))
    words = ["interpret", "-", "--pointers", "--arg", f"{tmp_path / 'x.npy'}", "--arg", "1", "--save", "0=-"]
    ran = piped(*words, data=add_one.read_bytes())
    assert np.load(io.BytesIO(ran.stdout)).tolist() == [42.0] and ran.stderr.startswith(b"arg 0: float32 1")
    both = run("interpret", add_one, *words[2:], "--json")
    assert both.code == 2 and "--json and --save N=- both go to standard output" in both.err


def test_errors_name_standard_input(run: Run, give: Give) -> None:
    for words in (["assemble", "-"], ["interpret", "-"], ["verify", "-"]):
        give(b"entry @k( {")
        ran = run(*words)
        assert ran.code == 3 and "<stdin>:1:11: error: expected a value name" in ran.err
        give(GELU.read_bytes())
        ran = run(*words)
        assert ran.code == 2 and "<stdin> is a kernel source" in ran.err and "name the file" in ran.err
    give(b"no cubin")
    assert run("inspect", "-").code == 2


def test_a_bundle_goes_through_a_pipe(bundle: Path, tmp_path: Path) -> None:
    packed = piped("pack", bundle, "-o", "-", data=b"")
    sha256 = pack(bundle, tmp_path / "b.tar.xz")
    assert packed.stdout == (tmp_path / "b.tar.xz").read_bytes() and packed.stderr == f"{sha256}  -\n".encode()
    done = piped("unpack", "-", "-o", tmp_path / "again", data=packed.stdout)
    assert done.returncode == 0
    assert len(Bundle.load(tmp_path / "again").entries) == len(Bundle.load(bundle).entries)
    cut = piped("unpack", "-", "-o", tmp_path / "cut", data=packed.stdout[:-20])
    assert cut.returncode == 5 and not (tmp_path / "cut").exists()


def test_a_report_through_a_pipe(tmp_path: Path) -> None:
    results = (
        b'{"format": 2, "kind": "matrix", "environment": {"seconds": "1", "machine": "m"}, "origin": null, "rows": []}'
    )
    made = piped("report", "-", "--output", "-", "--junit", tmp_path / "j.xml", data=results)
    assert made.returncode == 0, made.stderr
    assert made.stdout.startswith(b"<!doctype html>") and (tmp_path / "j.xml").exists()
    assert made.stderr == f"{tmp_path / 'j.xml'}\n".encode()
    lost = piped("report", "-", data=results)
    assert lost.returncode == 2 and b"name it with --output" in lost.stderr
