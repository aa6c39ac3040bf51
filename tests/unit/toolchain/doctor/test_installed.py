"""Packages and tools that are absent or of other versions, and stacks with known defects."""

from __future__ import annotations

import shutil
from importlib import metadata
from pathlib import Path
from unittest.mock import Mock

import pytest

from toolchain.doctor import installed
from toolchain.pinned.issues import Issue
from toolchain.pinned.stacks import stacks


def test_a_package_that_is_not_installed():
    line = installed.package("a-package-of-nobody")
    assert (line.status, line.found) == ("bad", "not installed") and "build_toolchain" in line.advice


def test_a_package_of_another_version_is_a_note(monkeypatch: pytest.MonkeyPatch):
    def version(name: str) -> str:
        del name
        return "1.2"

    monkeypatch.setattr(metadata, "version", version)
    line = installed.package("numpy")
    assert line.status == "note" and line.found.startswith("1.2 (tested with ")


def test_a_toolchain_that_was_not_built_is_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TILESTACK_TOOLCHAIN", str(tmp_path / "none"))
    line = installed.toolchain()
    assert line.status == "note" and "not built" in line.found and "build_toolchain" in line.advice


def test_a_toolchain_with_a_damaged_manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "manifest.json").write_text("{")
    monkeypatch.setenv("TILESTACK_TOOLCHAIN", str(tmp_path))
    line = installed.toolchain()
    assert line.status == "bad" and "manifest.json" in line.found and "build_toolchain" in line.advice


def test_the_default_stacks_defects_are_a_note(monkeypatch: pytest.MonkeyPatch):
    default = stacks().stack()

    def known(cuda_tile: str, llvm: str) -> tuple[Issue, ...]:
        del llvm
        return (Issue("x", cuda_tile, "1", "writes nonsense", "use another"),) if cuda_tile == default.cuda_tile else ()

    monkeypatch.setattr(installed, "known", known)
    line = installed.stack()
    assert line.status == "note" and line.found.startswith(default.name) and "writes nonsense" in line.found
    assert line.advice.startswith("use another: nox -s build_toolchain -- --native --stack ")
    monkeypatch.setattr(installed, "known", Mock(return_value=()))
    assert installed.stack().status == "ok"


@pytest.mark.parametrize(
    ("script", "status", "found"),
    [
        ("echo 14.0.6", "note", "is LLVM 14.0.6; no cuda-tile that we know builds with it"),
        ("echo 22.1.8", "ok", "is LLVM 22.1.8, with which cuda-tile 13.1.3 builds"),
        ("echo 23.1.4", "note", "with which cuda-tile 13.3.2 builds; cuda-tile 13.3.2 on LLVM 23 writes i1"),
        ("echo broken >&2; exit 3", "note", "does not say its version: it exited 3"),
    ],
)
def test_the_systems_llvm(script: str, status: str, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    config = tmp_path / "llvm-config"
    config.write_text(f"#!/bin/sh\n{script}\n")
    config.chmod(0o755)
    monkeypatch.setattr(shutil, "which", Mock(return_value=str(config)))
    line = installed.system_llvm()
    assert line is not None and (line.subject, line.status) == ("llvm", status) and found in line.found
    assert bool(line.advice) == (status != "ok")
    monkeypatch.setattr(shutil, "which", Mock(return_value=None))
    assert installed.system_llvm() is None
