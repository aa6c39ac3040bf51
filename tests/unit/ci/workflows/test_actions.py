"""Which actions a workflow uses, and where each is taken from."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci.workflows import actions
from ci.workflows.repository import git
from toolchain.errors import UsageError
from toolchain.knobs import ROOT

WORKFLOWS = ROOT / ".github/workflows"


@pytest.fixture
def repository(tmp_path: Path) -> tuple[Path, str]:
    """A git repository of an action that node runs, with its script missing, and its commit."""
    folder = tmp_path / "mirrors/actions/checkout"
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet")
    (folder / "action.yml").write_text("name: x\nruns: {using: node24, main: dist/index.js}\n")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "An action")
    return folder, git(folder, "rev-parse", "HEAD")


def add_script(folder: Path) -> str:
    (folder / "dist").mkdir()
    (folder / "dist/index.js").write_text("")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "Its script")
    return git(folder, "rev-parse", "HEAD")


def workflow(tmp_path: Path, *uses: str) -> Path:
    path = tmp_path / "w.yml"
    path.write_text("jobs:\n  a:\n    steps:\n" + "".join(f"      - uses: {use}\n" for use in uses))
    return path


def test_a_workflow_uses_what_the_workflows_use_that_it_calls() -> None:
    assert {used.name for used in actions.used(WORKFLOWS / "nightly.yml")} == {
        "actions/cache", "actions/checkout", "actions/download-artifact", "actions/upload-artifact",
    }  # fmt: skip
    (cache,) = [used for used in actions.used(WORKFLOWS / "matrix.yml") if used.name == "actions/cache"]
    assert cache.folders == {"restore", "save"}


@pytest.mark.parametrize("path", sorted(WORKFLOWS.glob("*.yml")), ids=lambda path: path.name)
def test_every_action_of_ours_has_a_stand_in(path: Path, tmp_path: Path) -> None:
    found = actions.find(actions.used(path), None, tmp_path)
    assert all(
        each.why and (each.folder / name / "action.yml").is_file() for each in found for name in each.used.folders
    )


def test_the_real_action_is_taken_where_it_is_whole(repository: tuple[Path, str], tmp_path: Path) -> None:
    folder, commit = repository
    mirrors = folder.parents[1]
    (torn,) = actions.find(actions.used(workflow(tmp_path, f"actions/checkout@{commit}")), mirrors, tmp_path / "s")
    assert torn.why == "its repository lacks dist/index.js" and torn.folder == actions.STAND_INS / "checkout"
    whole = add_script(folder)
    (real,) = actions.find(actions.used(workflow(tmp_path, f"actions/checkout@{whole}")), mirrors, tmp_path / "s")
    assert not real.why and (real.folder / "dist/index.js").is_file() and str(real) == "actions/checkout: the real one"


def test_actions_that_share_files_stand_in_together(repository: tuple[Path, str], tmp_path: Path) -> None:
    folder, _ = repository
    folder.rename(folder.with_name("upload-artifact"))
    whole = add_script(folder.with_name("upload-artifact"))
    uses = (f"actions/upload-artifact@{whole}", "actions/download-artifact@" + "0" * 40)
    found = actions.find(actions.used(workflow(tmp_path, *uses)), folder.parents[1], tmp_path / "s")
    assert {each.used.name: bool(each.why) for each in found} == dict.fromkeys(
        ("actions/upload-artifact", "actions/download-artifact"), True
    )


def test_an_action_that_nothing_stands_for_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="someone/else@v1"):
        actions.find(actions.used(workflow(tmp_path, "someone/else@v1")), None, tmp_path / "s")
