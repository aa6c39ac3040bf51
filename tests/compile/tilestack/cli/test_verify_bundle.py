"""pack, unpack and verify-bundle: a published bundle is made again, and changes to it are found."""

from __future__ import annotations

import hashlib
import io
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from tilestack.__main__ import main
from toolchain.bundles import archive
from toolchain.bundles.bundle import Bundle
from toolchain.knobs import ROOT, toolchain_dir

pytestmark = pytest.mark.needs("toolchain")
GELU = ("--entries", "/gelu_1024_f32$")


def tilestack(*words: str | Path, code: int = 0, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Runs the command: in this process, which saves its start, or that of another checkout."""
    arguments = [*map(str, words)]
    if cwd == ROOT:
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            done = subprocess.CompletedProcess(arguments, main(arguments), out.getvalue(), err.getvalue())
    else:
        command = [sys.executable, "-m", "tilestack", *arguments]
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILESTACK_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("PYTHONPATH", raising=False)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("published") / "bundle"
    tilestack("compile", *GELU, "--target", "sm_90", "--target", "sm_80", "--output", folder)
    return folder


@pytest.fixture
def bundle(published: Path, tmp_path: Path) -> Bundle:
    """An entry of gelu[f32] from both sources, for two targets."""
    shutil.copytree(published, tmp_path / "bundle")
    return Bundle.load(tmp_path / "bundle")


def change_manifest(bundle: Bundle, change: Callable[[Any], None]) -> None:
    path = bundle.root / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest, indent=1) + "\n")


def verify(path: Path, *words: str, code: int, cwd: Path = ROOT) -> tuple[dict[str, str], str, Any]:
    """The files that do not match, by status and name; standard error but for how far a slow machine is; the report."""
    done = tilestack("verify-bundle", path, *words, "--json", code=code, cwd=cwd)
    shown = json.loads(done.stdout)
    others = {row["file"]: f"{row['status']}: {row['detail']}" for row in shown["files"] if row["status"] != "match"}
    assert shown["matches"] == (not others) == (code == 0)
    return others, re.sub(r"^compiled \d+ of \d+ steps .*\n", "", done.stderr, flags=re.MULTILINE), shown


def test_a_bundle_is_packed_unpacked_and_made_again(bundle: Bundle, tmp_path: Path) -> None:
    packed = tmp_path / "b.tar.xz"
    said = tilestack("pack", bundle.root, "-o", packed).stdout
    assert said.split() == [hashlib.sha256(packed.read_bytes()).hexdigest(), str(packed)]
    assert "2 entries for sm_90, sm_80" in tilestack("unpack", packed, "-o", tmp_path / "got").stdout
    for path in (bundle.root, packed, tmp_path / "got"):
        others, error, shown = verify(path, code=0)
        assert (others, error, shown["differences"], shown["part"]) == ({}, "", [], False)
        assert shown["counts"] == {"match": 7, "mismatch": 0, "missing": 0, "extra": 0, "damaged": 0}
    text = tilestack("verify-bundle", packed, "--files").stdout
    assert "7 of 7 files match, all of it" in text and text.count("\nmatch ") == 6
    assert "match    mlir/gelu_1024_f32 sm_90: files/" in text


def test_the_compile_cache_has_no_part_in_it(bundle: Bundle, tmp_path: Path) -> None:
    tilestack("compile", *GELU, "--target", "sm_90", "--target", "sm_80", "--output", tmp_path / "again")
    entries = [path for path in (tmp_path / "cache").rglob("*") if path.is_file() and path.suffix != ".jsonl"]
    assert len(entries) == 6
    for path in entries:
        path.write_bytes(hashlib.sha256(b"wrong").digest() + b"wrong")
    assert verify(bundle.root, code=0)[0] == {}


def test_a_file_changed_after_publication(bundle: Bundle, tmp_path: Path) -> None:
    packed = tmp_path / "b.tar.xz"
    cubin = bundle.find("mlir", "gelu_1024_f32").cubins["sm_90"]
    content = bytearray(cubin.path.read_bytes())
    content[-1] ^= 1
    cubin.path.write_bytes(content)
    name = f"files/{cubin.path.name}"
    others, error, _ = verify(bundle.root, code=5)
    assert others == {name: f"damaged: changed after it was written: {others[name].partition('written: ')[2]}"}
    assert f"{cubin.path} is damaged" in others[name] and "1 damaged" in error and "differs here" not in error
    assert f"{cubin.path} is damaged" in tilestack("pack", bundle.root, "-o", packed, code=5).stderr


def test_a_forged_file_with_a_manifest_that_fits_it(bundle: Bundle, tmp_path: Path) -> None:
    content = b"forged"
    sha256 = hashlib.sha256(content).hexdigest()
    old = bundle.entries[0].cubins["sm_80"].path
    old.unlink()
    (bundle.root / "files" / f"{sha256}.cubin").write_bytes(content)
    change_manifest(bundle, lambda manifest: manifest["entries"][0]["cubins"].update(sm_80=sha256))
    tilestack("pack", bundle.root, "-o", tmp_path / "b.tar.xz")
    others, error, _ = verify(tmp_path / "b.tar.xz", code=5)
    assert others[f"files/{sha256}.cubin"] == f"mismatch: made again, its sha256 is {old.stem}"
    assert others["manifest.json"] == "mismatch: it differs in sha256s of files"
    assert "do not trust it" in error


def test_a_forged_entry(bundle: Bundle) -> None:
    change_manifest(bundle, lambda manifest: manifest["entries"][0]["spec"].update(grid=["1", "1", "1"]))
    others, error, _ = verify(bundle.root, code=5)
    assert list(others) == ["manifest.json"] and "spec of 1 entries, the first mlir/gelu_1024_f32" in str(others)
    assert "entry mlir/gelu_1024_f32: this checkout describes it differently" in error


def test_a_missing_and_an_extra_file(bundle: Bundle) -> None:
    gone = bundle.entries[1].bytecode.path
    gone.unlink()
    (bundle.root / "files" / "notes.txt").touch()
    others, error, _ = verify(bundle.root, code=5)
    assert {name: said.partition(":")[0] for name, said in others.items()} == {
        f"files/{gone.name}": "missing",
        "files/notes.txt": "extra",
    }
    assert "1 missing, 1 extra" in error


def test_a_bundle_that_does_not_say_what_its_ops_take(bundle: Bundle) -> None:
    change_manifest(bundle, lambda manifest: manifest.pop("ops"))
    said = tilestack("verify-bundle", bundle.root, code=5).stderr
    assert "manifest.json is damaged: its ops are not a table" in said


def test_another_tool(bundle: Bundle) -> None:
    def foreign(manifest: Any) -> None:
        manifest["tools"]["ptxas"]["sha256"] = "0" * 64
        manifest["tools"]["cudafe"] = {"version": "9", "sha256": "1" * 64}

    change_manifest(bundle, foreign)
    others, error, shown = verify(bundle.root, code=5)
    assert others == {"manifest.json": "mismatch: it differs in tools"}
    (ptxas,) = [line for line in shown["differences"] if line.startswith("tool ptxas")]
    assert "sha256 0000000000000000" in ptxas and "here is" in ptxas
    assert "tool cudafe 9: this checkout has no such tool" in error and "mismatch is to be expected" in error
    assert "tileiras" not in error


def test_another_kernel_and_an_entry_that_is_gone(bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    checkout = tmp_path / "checkout"
    for name in ("entries", "gpt", "kernels_mlir", "kernels_py", "tilestack", "toolchain", "tune"):
        shutil.copytree(ROOT / name, checkout / name, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setenv("TILESTACK_TOOLCHAIN", str(toolchain_dir()))
    assert verify(bundle.root, code=0, cwd=checkout)[0] == {}

    kernel = checkout / "kernels_mlir" / "gelu.mlir"
    text = kernel.read_text()
    assert "0.5" in text
    kernel.write_text(text.replace("0.5", "0.25", 1))
    others, error, _ = verify(bundle.root, code=5, cwd=checkout)
    ours = bundle.find("mlir", "gelu_1024_f32")
    changed = {f"files/{ref.path.name}" for ref in (ours.bytecode, *ours.cubins.values())}
    assert set(others) == {*changed, "manifest.json"}
    assert "source mlir: 1 entries were made from other kernels" in error and "source py" not in error
    assert verify(bundle.root, "--only", "py/gelu_1024_f32", code=0, cwd=checkout)[2]["part"]

    entries = checkout / "entries" / "portable.toml"
    gelu = 'variant = "1024"\naligned = ["*"]\nmultiples = { N = 8 }'
    assert entries.read_text().count(gelu) == 1
    entries.write_text(entries.read_text().replace(gelu, gelu.replace("1024", "other")))
    others, error, _ = verify(bundle.root, code=5, cwd=checkout)
    assert {others[name] for name in changed} == {"mismatch: this checkout has no such entry"}
    assert "entry mlir/gelu_1024_f32: this checkout does not have it" in error

    kernel.write_text("no kernel")
    entries.write_text((ROOT / "entries" / "portable.toml").read_text())
    others, error, _ = verify(bundle.root, "--only", "mlir/gelu_1024_f32", code=5, cwd=checkout)
    assert set(others.values()) == {"mismatch: did not compile here"} and "kernels_mlir/gelu.mlir:1:1" in error


def test_a_part(bundle: Bundle) -> None:
    (bundle.root / "files" / "notes.txt").touch()  # not of the part
    _, _, shown = verify(bundle.root, "--target", "sm_80", "--only", "gelu_1024_f32", code=0)
    assert shown["part"] and [(row["what"], row["kind"]) for row in shown["files"]] == [
        (f"{source}/gelu_1024_f32", kind) for source in ("mlir", "py") for kind in ("code", "sm_80")
    ]
    said = tilestack("verify-bundle", bundle.root, "--only", "nope", "mlir/gelu_1024_f32", code=2).stderr
    assert "has no entry nope\n" in said
    assert (
        "no cubins for sm_120\n  next: one of sm_90"
        in tilestack("verify-bundle", bundle.root, "--target", "sm_120", code=2).stderr
    )


def test_what_is_no_bundle(bundle: Bundle, tmp_path: Path) -> None:
    (bundle.root / "manifest.json").write_text("{")
    assert "manifest.json is damaged" in tilestack("verify-bundle", bundle.root, code=5).stderr
    assert "cannot be unpacked" in tilestack("verify-bundle", tmp_path / "none.tar.xz", code=2).stderr
    (tmp_path / "x.tar.xz").write_bytes(b"x")
    assert "is damaged, or not a .tar.xz" in tilestack("verify-bundle", tmp_path / "x.tar.xz", code=5).stderr
    assert archive.SUFFIX in tilestack("pack", bundle.root, "-o", tmp_path / "b.zip", code=2).stderr
