"""The commands that make and read cubins."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from toolchain.bundles.bundle import Bundle
from toolchain.knobs import ROOT
from toolchain.pinned.tools import tool

pytestmark = pytest.mark.needs("toolchain")


def tilestack(*words: str | Path, code: int = 0, cwd: Path = ROOT) -> str:
    """Run the command. Returns its output, or standard error if it should fail."""
    done = subprocess.run(
        [sys.executable, "-m", "tilestack", *map(str, words)],
        cwd=cwd, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done.stderr if code else done.stdout


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILESTACK_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def test_compile_inspect_and_the_bundle_between(tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    words = ["--entries", "^mlir/linear_(128x128x64|any)_bf16$"]
    shown = json.loads(tilestack("compile", *words, "--target", "sm_90", "--json", "--output", folder))
    bundle = Bundle.load(folder)
    assert (shown["targets"], shown["entries"], shown["cached"]) == (["sm_90"], len(bundle.entries), 0)
    assert len(bundle.entries) == 2
    assert bundle.targets == ("sm_90",)
    for name in ("tileiras", "ptxas"):
        assert bundle.tools[name] == {"version": tool(name).version, "sha256": tool(name).sha256}

    rows = json.loads(tilestack("inspect", folder, "--json"))
    assert [row["symbol"] for row in rows] == [entry.spec.symbol for entry in bundle.entries]
    big = next(row for row in rows if row["symbol"] == "linear_128x128x64_bf16")
    assert big["tensor_core"]["HGMMA"] and big["copy_engine"]["UTMALDG"] and big["registers"] > 32
    table = tilestack("inspect", folder)
    assert "linear_128x128x64_bf16" in table and f"HGMMA:{big['tensor_core']['HGMMA']}" in table
    assert "one of sm_90" in tilestack("inspect", folder, "--target", "sm_80", code=2)
    missing = tilestack("inspect", folder, "--op", "gelu", code=2)
    assert f"{folder} has no cubin of gelu for sm_90" in missing and "next: it has " in missing
    alone = bundle.entries[0].cubins["sm_90"].path
    assert json.loads(tilestack("inspect", alone, "--json"))[0] == {**rows[0], "source": ""}


def test_assemble_makes_what_compile_makes(tmp_path: Path) -> None:
    tilestack("compile", "--entries", "^mlir/gelu_1024_f16$", "--target", "sm_80", "--output", tmp_path / "bundle")
    (entry,) = Bundle.load(tmp_path / "bundle").entries
    tilestack("assemble", "--entry", entry.spec.symbol, "-o", tmp_path / "k.tilebc", cwd=tmp_path)
    assert (tmp_path / "k.tilebc").read_bytes() == entry.bytecode.path.read_bytes()
    tilestack("assemble", tmp_path / "k.tilebc", "--target", "sm_80", "-o", tmp_path / "k.cubin")
    assert (tmp_path / "k.cubin").read_bytes() == entry.cubins["sm_80"].path.read_bytes()


def test_standard_output_takes_bytes(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tilestack", "assemble", "kernels_mlir/gelu.mlir"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    tilestack("assemble", "kernels_mlir/gelu.mlir", "-o", tmp_path / "k")
    assert done.stdout == (tmp_path / "k").read_bytes()


def test_a_python_entry_from_two_folders_is_the_same(tmp_path: Path) -> None:
    made: list[bytes] = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        tilestack(
            "assemble",
            "--source",
            "py",
            "--entry",
            "gelu_1024_f32",
            "--target",
            "sm_120",
            "-o",
            "k",
            cwd=tmp_path / name,
        )
        made.append((tmp_path / name / "k").read_bytes())
    assert made[0] == made[1]


def test_a_missing_toolchain_is_an_error_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("TILESTACK_TOOLCHAIN", str(tmp_path / "empty"))
    words = ["compile", "--op", "gelu", "--source", "mlir", "--dtype", "f32", "--output", tmp_path / "bundle"]
    error = tilestack(*words, code=4)
    assert str(tmp_path / "empty") in error
    assert error.count("build_toolchain") == 1  # said once, not for each cell
    assert "was not written" in error
    assert not (tmp_path / "bundle").exists()
    tilestack(*words, "--no-targets")  # takes no tool
