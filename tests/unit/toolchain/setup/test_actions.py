"""The pins of the workflows' actions."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from toolchain.errors import ToolFailed, UsageError
from toolchain.setup import actions
from toolchain.setup.actions import Action

A, B, C = ("a" * 40, "b" * 40, "c" * 40)


def test_the_workflows_are_as_the_table_says() -> None:
    pinned, used = actions.load(), set[str]()
    for path in sorted(actions.WORKFLOWS.glob("*.yml")):
        text = path.read_text()
        assert actions.rewritten(text, pinned) == text, path.name
        used |= {match["name"] for match in actions.USES.finditer(text)}
    assert used == pinned.keys()
    assert actions.render(pinned) == actions.TABLE.read_text()


def test_the_newest_is_by_number_and_the_commit_that_of_an_annotated_tag() -> None:
    refs = [(A, "v9.0.0"), (B, "v10.0.0"), (C, "v10.0.0^{}"), (A, "v10"), (A, "v11.0.0-beta"), (A, "nightly")]
    assert actions.newest("".join(f"{commit}\trefs/tags/{tag}\n" for commit, tag in refs)) == Action("v10.0.0", C)
    with pytest.raises(UsageError, match="no tag"):
        actions.newest(f"{A}\trefs/tags/v1\n")


def test_a_line_keeps_the_folder_in_the_repository() -> None:
    line = f"        uses: actions/cache/save@{A} # v6.1.0\n"
    new = actions.rewritten(line, {"actions/cache": Action("v7.0.0", B)})
    assert new == f"        uses: actions/cache/save@{B} # v7.0.0\n"
    with pytest.raises(UsageError, match="actions/cache"):
        actions.rewritten(line, {})


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table with one action at v1.2.0, one workflow, and mirrors with v1.1.0 of it."""
    monkeypatch.setattr(actions, "TABLE", tmp_path / "actions.toml")
    monkeypatch.setattr(actions, "WORKFLOWS", tmp_path / "workflows")
    (tmp_path / "workflows").mkdir()
    (tmp_path / "workflows/w.yml").write_text(f"uses: o/n@{A} # v1.2.0\n")
    monkeypatch.setattr(actions.load, "__defaults__", (tmp_path / "actions.toml",))
    (tmp_path / "actions.toml").write_text(actions.render({"o/n": Action("v1.2.0", A)}))
    mirror = tmp_path / "mirrors/o/n"
    mirror.mkdir(parents=True)
    for words in (
        ["init", "-q"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x"],
    ):
        subprocess.run(["git", "-C", str(mirror), *words], check=True)
    tag(mirror, "v1.1.0")
    return tmp_path


def tag(mirror: Path, name: str) -> str:
    subprocess.run(["git", "-C", str(mirror), "tag", name], check=True)
    found = subprocess.run(["git", "-C", str(mirror), "rev-parse", name], check=True, capture_output=True, text=True)
    return found.stdout.strip()


def update(site: Path) -> str:
    return "\n".join(actions.update(["--mirrors", str(site / "mirrors")]))


def test_a_newer_release_moves_the_table_and_the_workflow_and_an_older_one_does_not(site: Path) -> None:
    assert "stays v1.2.0; the newest" in update(site)
    commit = tag(site / "mirrors/o/n", "v2.0.0")
    assert f"v1.2.0 -> v2.0.0 {commit}" in update(site)
    assert (site / "workflows/w.yml").read_text() == f"uses: o/n@{commit} # v2.0.0\n"
    assert actions.load(site / "actions.toml") == {"o/n": Action("v2.0.0", commit)}


def test_a_tag_that_was_moved_is_an_error(site: Path) -> None:
    tag(site / "mirrors/o/n", "v1.2.0")
    with pytest.raises(UsageError, match="was moved"):
        update(site)


def test_without_a_mirror_an_action_stays_and_a_broken_one_is_an_error(site: Path) -> None:
    (site / "mirrors/o/n").rename(site / "elsewhere")
    assert "stays v1.2.0: there is no" in update(site)
    (site / "mirrors/o/n").mkdir()
    with pytest.raises(ToolFailed, match="git ls-remote"):
        update(site)
    with pytest.raises(UsageError, match="no action x/y"):
        list(actions.update(["x/y"]))
