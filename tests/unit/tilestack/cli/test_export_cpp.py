"""`tilestack export-cpp`: the command; tests/unit/cute_runtime/export/ builds and runs what it writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolchain.bundles.bundle import Compiled, write
from toolchain.contract.artifact import tile_ir
from toolchain.contract.entry import EntrySpec

from ..conftest import Run


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    spec = EntrySpec("gelu_f32", "gelu", "mlir", "f32")
    return write(tmp_path / "b", [Compiled(spec, tile_ir(b"", "13.4"), {"sm_90": b"\1\2"})], {}).root


def test_a_header_to_a_file_or_to_standard_output(run: Run, bundle: Path, tmp_path: Path) -> None:
    shown = run("export-cpp", bundle, "--namespace", "a::b")
    assert shown.code == 0 and "namespace a::b {" in shown.out and "files/" in shown.out
    written = run("export-cpp", bundle, "--embed", "--output", tmp_path / "k.hpp")
    assert (written.code, written.out) == (0, "")
    text = (tmp_path / "k.hpp").read_text()
    assert "namespace tilestack_kernels {" in text and "\n  1,2,\n" in text and "files/" not in text


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--op", "linear"), "has no cubin of mlir/linear for sm_90"),
        (("--namespace", "1a"), "'1a' is not a namespace of C++"),
        (("--source", "py"), "has no source py"),
    ],
)
def test_what_it_cannot_write(run: Run, bundle: Path, words: tuple[str, ...], says: str) -> None:
    ran = run("export-cpp", bundle, *words)
    assert ran.code == 2 and says in ran.err
