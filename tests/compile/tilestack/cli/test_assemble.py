"""`assemble` to machine code: the commands that are shown are those that make it."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from tilestack.__main__ import main
from toolchain.compiling.cubin import is_cubin
from toolchain.knobs import ROOT

pytestmark = pytest.mark.needs("toolchain")
GELU = str(ROOT / "kernels_mlir" / "gelu.mlir")


def test_the_commands_of_a_dry_run_make_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["assemble", GELU, "--target", "sm_90", "--emit", "sass"]
    assert main([*words, "--dry-run"]) == 0
    own, assemble, disassemble = map(shlex.split, capsys.readouterr().out.splitlines())
    assert list(tmp_path.iterdir()) == []
    assert main([*words, "--save-temps", "kept", "-v", "-o", "gelu.sass"]) == 0
    shown = [shlex.split(line) for line in capsys.readouterr().err.splitlines()]
    in_kept = [[word.replace("gelu.", "kept/gelu.") for word in command] for command in (assemble, disassemble)]
    assert shown == in_kept
    assert {path.name for path in Path("kept").iterdir()} == {
        f"gelu.{form}" for form in ("mlir", "tilebc", "cubin", "sass")
    }
    assert own[0] == "tilestack" and main(own[1:]) == 0
    subprocess.run(assemble, check=True)
    made = subprocess.run(disassemble, check=True, capture_output=True, text=True).stdout
    assert Path("gelu.cubin").read_bytes() == Path("kept/gelu.cubin").read_bytes()
    assert made == Path("gelu.sass").read_text() == Path("kept/gelu.sass").read_text()
    assert "MUFU.TANH" in made


def test_a_cubin_is_what_a_target_makes(tmp_path: Path) -> None:
    for words in ([], ["--emit", "cubin"]):
        assert main(["assemble", GELU, "--target", "sm_90", *words, "-o", str(tmp_path / "k")]) == 0
        assert is_cubin((tmp_path / "k").read_bytes())
