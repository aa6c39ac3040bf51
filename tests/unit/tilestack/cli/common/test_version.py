"""`tilestack --version` in a checkout, in an installed package, and in neither."""

from __future__ import annotations

import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from tilestack.__main__ import main
from tilestack.cli.common.version import version
from toolchain.errors import ToolchainError
from toolchain.knobs import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_command_says_the_version_of_pyproject(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr() == (f"tilestack {PROJECT['version']}\n", "")


def test_the_changelog_has_the_version() -> None:
    assert f"\n## {PROJECT['version']}" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.parametrize("other", [None, '[project]\nname = "another"\nversion = "9"\n'])
def test_an_installed_package_says_its_own(other: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if other:
        (tmp_path / "pyproject.toml").write_text(other)
    monkeypatch.setattr("tilestack.cli.common.version.ROOT", tmp_path)
    monkeypatch.setattr(metadata, "version", {"tilestack": "1.2.3"}.__getitem__)
    assert version() == "1.2.3"


def test_neither_is_an_error_with_an_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def absent(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr("tilestack.cli.common.version.ROOT", tmp_path)
    monkeypatch.setattr(metadata, "version", absent)
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == ToolchainError.exit_code
    assert "no package tilestack is installed" in capsys.readouterr().err
