"""`diff` and `bisect` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tilestack.__main__ import main
from toolchain.bundles.bundle import Compiled, write
from toolchain.contract.artifact import tile_ir
from toolchain.contract.sources import load_source


@pytest.fixture
def bundle(tmp_path: Path) -> str:
    spec = next(spec for spec in load_source("kernels_py").entries() if spec.symbol == "gelu_1024_f16")
    write(tmp_path / "bundle", [Compiled(spec, tile_ir(b"code", "13.4"), {"sm_90": b"cubin"})], {})
    return str(tmp_path / "bundle")


def test_a_bundle_is_as_itself(bundle: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [tmp_path / "comment.md", tmp_path / "page.html"]
    assert main(["diff", bundle, bundle, "--json", "--markdown", str(files[0]), "--html", str(files[1])]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["identical"], shown["changed"]) == (1, [])
    assert all("0 suspicious" in file.read_text() for file in files)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["diff", "--target", "sm_80"], "has cubins for sm_90"),
        (["bisect"], "same cubins"),
        (["bisect", "--target", "sm_90"], "give all of them, or none"),
    ],
)
def test_what_cannot_be_compared(words: list[str], said: str, bundle: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([words[0], bundle, bundle, *words[1:]]) == 2
    assert said in capsys.readouterr().err
