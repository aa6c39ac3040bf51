from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest

from toolchain.errors import ToolchainError
from toolchain.knobs import ROOT
from toolchain.pinned.manifest import InstalledFile, Manifest, check_file, check_installed, installation
from toolchain.pinned.pins import file_sha256


@pytest.fixture
def installed(tmp_path: Path) -> InstalledFile:
    """A file as installed in tmp_path."""
    path = tmp_path / "bin"
    path.write_bytes(b"machine code")
    stat = path.stat()
    return InstalledFile("bin", "wheel==1", "1", file_sha256(path), stat.st_size, stat.st_mtime_ns)


def test_what_is_saved_is_loaded(tmp_path: Path, installed: InstalledFile):
    manifest = Manifest("identity", "3.11.2", {"tool": installed})
    manifest.save(tmp_path)
    assert Manifest.load(tmp_path) == manifest
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bin", "manifest.json"]


def test_only_what_is_installed_makes_another_toolchain():
    """An edit of a linter's settings must not install everything anew."""
    written = (ROOT / "pyproject.toml").read_text()
    now = installation(tomllib.loads(written))
    for edit in ("# a comment\n", "[tool.new]\nx = 1\n"):
        assert installation(tomllib.loads(written + edit)) == now
    for old, new in (("line-length = 120", "line-length = 100"), ('readme = "README.md"', 'readme = "R.md"')):
        assert old in written and installation(tomllib.loads(written.replace(old, new))) == now
    for old, new in (
        ('"xdsl>=0.74"', '"xdsl>=0.75"'), ('version = "0.1.0"', 'version = "0.2.0"'), ('"zizmor"', '"zizmor>=1"'),
        ('build-backend = "', 'build-backend = "x.'), ('tilestack = "tilestack.', 'other = "tilestack.'),
    ):  # fmt: skip
        assert old in written and installation(tomllib.loads(written.replace(old, new))) != now, old


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "missing"),
        ("", "damaged"),
        ('{"format": 1, "identity": "x", "python"', "damaged"),
        ('{"format": 1}', "damaged"),
        ('{"format": 1, "identity": "x", "python": "3", "tools": {"a": {"path": "a"}}}', "damaged"),
        ('{"format": 99}', "format 99, expected 1"),
        ('{"format": 1, "identity": "x", "python": "3", "tools": []}', "damaged"),
        ("[]", "damaged"),
    ],
)
def test_a_manifest_that_cannot_be_read_names_file_and_repair(tmp_path: Path, text: str | None, message: str):
    if text is not None:
        (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(ToolchainError, match=message) as caught:
        Manifest.load(tmp_path)
    assert str(tmp_path / "manifest.json") in str(caught.value)
    assert "nox -s build_toolchain" in str(caught.value)


def test_a_manifest_that_is_no_file_is_an_error(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(ToolchainError, match=f"{tmp_path}/file/manifest.json: cannot be read: Not a directory"):
        Manifest.load(tmp_path / "file")


def test_an_unchanged_or_only_touched_file_passes(tmp_path: Path, installed: InstalledFile):
    check_installed(tmp_path, installed)
    os.utime(tmp_path / "bin", (1, 1))
    check_installed(tmp_path, installed)


def test_a_changed_file_names_what_was_expected_and_found(tmp_path: Path, installed: InstalledFile):
    (tmp_path / "bin").write_bytes(b"machine cod3")
    os.utime(tmp_path / "bin", (1, 1))
    with pytest.raises(ToolchainError, match="damaged") as caught:
        check_installed(tmp_path, installed)
    for part in (str(tmp_path / "bin"), installed.sha256, file_sha256(tmp_path / "bin"), "nox -s build_toolchain"):
        assert part in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path, installed: InstalledFile):
    (tmp_path / "bin").unlink()
    with pytest.raises(
        ToolchainError, match=f"{tmp_path}/bin: missing, expected a file with sha256 {installed.sha256}"
    ):
        check_installed(tmp_path, installed)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(_: Path) -> str:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "bin").touch()
    monkeypatch.setattr("toolchain.pinned.manifest.file_sha256", refuse)
    with pytest.raises(ToolchainError, match=rf"{tmp_path}/bin: cannot be read: Permission denied\n  next: run"):
        check_file(tmp_path / "bin", "0" * 64)
