"""Files that nobody meant to commit."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ci import root


@pytest.mark.parametrize(
    ("path", "stray"),
    [
        (".NOTE", True), ("notes.txt", True), ("scratch/a.py", True), (".vscode/settings.json", True),
        ("toolchain/.swp", True), ("docs/.cache/a.md", True), ("conanfile.py/x", True), ("toolchain", True),
        (".gitignore", False), ("README.md", False), ("toolchain/a.py", False), (".ci/run", False),
    ],
)  # fmt: skip
def test_what_is_declared_may_be_there(path: str, stray: bool) -> None:
    assert root.strays([path]) == [path] * stray


def test_what_is_about_to_be_committed_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(root, "ROOT", tmp_path)
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / "README.md").touch()
    (tmp_path / ".NOTE").touch()
    subprocess.run(["git", "add", "README.md"], cwd=tmp_path, check=True)
    assert root.main() == 0  # a file of one's own is nobody's business
    subprocess.run(["git", "add", ".NOTE"], cwd=tmp_path, check=True)
    assert root.main() == 1
    assert capsys.readouterr().out.startswith(".NOTE: not declared in ci/root.py")


def test_all_that_is_declared_is_there() -> None:
    assert not [name for name in root.FOLDERS if not (root.ROOT / name).is_dir()]
    assert not [name for name in root.FILES if not (root.ROOT / name).is_file()]
