"""Building the toolchain, but for the installing itself, which `nox -s build_toolchain` has done before this runs."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from toolchain.errors import ToolchainError
from toolchain.pinned.manifest import InstalledFile, Manifest, identity
from toolchain.pinned.pins import Pins, file_sha256, pins
from toolchain.setup import build as setup
from toolchain.setup.build import unfit
from toolchain.setup.uv import uv


@pytest.fixture
def toolchain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that looks like a finished toolchain, of tools that are pinned."""
    (tmp_path / "venv/bin").mkdir(parents=True)
    (tmp_path / "venv/bin/python").symlink_to(sys.executable)
    tools: dict[str, InstalledFile] = {}
    for name in pins().tools:
        (tmp_path / name).write_text(name)
        stat = (tmp_path / name).stat()
        tools[name] = InstalledFile(name, "w==1", "1", file_sha256(tmp_path / name), stat.st_size, stat.st_mtime_ns)
    Manifest(identity(platform.python_version()), platform.python_version(), tools).save(tmp_path)
    pinned = {name: replace(pin, sha256={platform.machine(): tools[name].sha256}) for name, pin in pins().tools.items()}
    monkeypatch.setattr("toolchain.pinned.manifest.pins", lambda: Pins(pins().wheels, pinned))
    return tmp_path


def test_a_finished_toolchain_is_fit(toolchain: Path):
    assert unfit(toolchain) is None


def test_a_build_that_was_killed_is_not(toolchain: Path):
    (toolchain / "manifest.json").unlink()
    assert "manifest.json: missing" in str(unfit(toolchain))


def test_a_damaged_tool_is_named(toolchain: Path):
    (toolchain / "ptxas").write_text("ptxas, but longer")
    assert f"{toolchain}/ptxas: damaged" in str(unfit(toolchain))


@pytest.mark.parametrize("change", [lambda tools: tools.pop("ptxas"), lambda tools: tools["ptxas"].update(sha256="0")])
def test_a_manifest_that_is_not_of_the_pins_is_built_anew(
    toolchain: Path, change: Callable[[dict[str, dict[str, str]]], object]
):
    table = json.loads((toolchain / "manifest.json").read_text())
    change(table["tools"])
    (toolchain / "manifest.json").write_text(json.dumps(table))
    assert "ptxas differs" in str(unfit(toolchain))


def test_a_lost_python_is_named(toolchain: Path):
    (toolchain / "venv/bin/python").unlink()
    assert "venv/bin/python: missing" in str(unfit(toolchain))


def test_another_python_or_lock_asks_for_a_new_build(toolchain: Path):
    manifest = Manifest.load(toolchain)
    Manifest(identity("3.99.0"), "3.99.0", manifest.tools).save(toolchain)
    assert "changed" in str(unfit(toolchain))


def test_a_build_starts_from_nothing_and_goes_past_a_damaged_cache(toolchain: Path, monkeypatch: pytest.MonkeyPatch):
    calls: list[Sequence[str]] = []
    surveys = iter([False, True])

    def survey(*_: Path) -> dict[str, InstalledFile]:
        if next(surveys):
            return {}
        raise ToolchainError("ptxas: damaged")

    monkeypatch.setattr(setup, "uv", lambda args, **_: calls.append(args))
    monkeypatch.setattr(setup, "survey", survey)
    setup.build(toolchain, lock=0)
    assert not (toolchain / "venv").exists()
    assert [call[:2] for call in calls] == [["venv", "-q"], ["pip", "sync"], ["pip", "sync"], ["pip", "install"]]
    assert ["--no-cache" in call for call in calls] == [False, False, True, False]
    assert Manifest.load(toolchain).tools == {}


def test_a_build_that_fails_leaves_no_manifest(toolchain: Path, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object, **__: object) -> None:
        raise ToolchainError("no network")

    monkeypatch.setattr(setup, "uv", fail)
    with pytest.raises(ToolchainError, match="no network"):
        setup.build(toolchain, lock=0)
    with pytest.raises(ToolchainError, match="missing"):
        Manifest.load(toolchain)


@pytest.fixture
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where uv is looked for."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    return tmp_path / "uv"


def test_uv_that_fails_is_quoted(beside: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    beside.write_text("#!/bin/sh\necho 'error: dns error' >&2\necho '  no such host' >&2\nexit 2\n")
    beside.chmod(0o755)
    with pytest.raises(ToolchainError) as caught:
        uv(["pip", "sync"], cwd=tmp_path, doing="installing requirements.lock")
    parts = ("requirements.lock failed", f"{beside} pip sync", "exited 2", "error: dns error\n  no such host", "mirror")
    assert [part for part in parts if part not in str(caught.value)] == []
    assert "dns error" in capfd.readouterr().err


def test_no_uv_says_how_to_get_it(beside: Path, tmp_path: Path):
    with pytest.raises(ToolchainError, match="pip install -qr bootstrap"):
        uv(["pip", "sync"], cwd=tmp_path, doing="installing")
    assert not beside.exists()
