"""What differs from a base, on repositories that are as they should not be."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ci.plan.changes import NO_COMMIT, Changes, changed_since
from toolchain.errors import UsageError


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=x", "-c", "user.email=x@x", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository on a branch `change`, which has parted from main."""
    made = tmp_path / "root"
    (made / "folder").mkdir(parents=True)
    git(made, "init", "-b", "main")
    for name in ("kept", "committed", "edited", "folder/one", "folder/two"):
        (made / name).write_text(f"{name}\n" * 5)
    git(made, "add", ".")
    git(made, "commit", "-m", "first")
    git(made, "checkout", "-b", "change")
    git(made, "checkout", "main")
    (made / "kept").write_text("of main")
    git(made, "commit", "-am", "of main")
    git(made, "checkout", "change")
    return made


def change(root: Path) -> None:
    (root / "committed").write_text("new")
    git(root, "commit", "-am", "second")


def test_what_changed_since_a_commit_is_committed_or_not(root: Path) -> None:
    change(root)
    (root / "edited").write_text("new")
    (root / "ünknown").write_text("new")
    found = changed_since("main", root)
    assert found.paths == ["committed", "edited", "ünknown"] and not found.renamed
    assert found.why.startswith("3 paths differ from ") and found.why.endswith(", where this and main parted")


def test_an_empty_change_is_none(root: Path) -> None:
    found = changed_since("main", root)
    assert found.paths == [] and found.why.startswith("nothing differs from ")


def test_a_renamed_folder_is_known_by_both_names(root: Path) -> None:
    git(root, "mv", "folder", "to here")
    git(root, "commit", "-m", "renamed")
    found = changed_since("main", root)
    assert found.paths == ["folder/one", "folder/two", "to here/one", "to here/two"]
    assert found.renamed == {"folder/one": "to here/one", "folder/two": "to here/two"}
    assert ", 2 of them renamed" in found.why


def everything(found: Changes, *words: str) -> None:
    assert found.paths is None
    assert all(word in found.why for word in words), found.why


def test_a_base_that_is_gone_after_a_force_push_plans_everything(root: Path) -> None:
    gone = git(root, "rev-parse", "main")
    git(root, "branch", "-f", "main", "main^")
    git(root, "reflog", "expire", "--expire=now", "--all")
    git(root, "gc", "--prune=now", "--quiet")
    everything(changed_since(gone, root), f"the base {gone[:12]} is not in this clone", "force-push")


def test_a_force_pushed_base_without_a_common_commit_plans_everything(root: Path) -> None:
    change(root)
    git(root, "checkout", "--orphan", "other")
    git(root, "commit", "-m", "other")
    everything(changed_since("main", root), "no common commit of main and this one", "unrelated")


@pytest.mark.parametrize("by", ["hash", "name"])
def test_a_shallow_clone_plans_everything_and_says_how_to_get_more(root: Path, tmp_path: Path, by: str) -> None:
    change(root)
    base = git(root, "rev-parse", "main")
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "--depth", "1", "--no-single-branch", f"file://{root}", str(shallow))
    if by == "hash":
        base = git(root, "rev-parse", "main^")
        everything(changed_since(base, shallow), f"the base {base[:12]} is not in this clone", "fetch --unshallow")
    else:
        everything(changed_since("origin/main", shallow), "no common commit of origin/main", "fetch --unshallow")
    with pytest.raises(UsageError, match=r"git knows no commit 'nowhere'\n  next: .* git fetch --unshallow"):
        changed_since("nowhere", shallow)
    git(shallow, "fetch", "--unshallow")
    assert changed_since(base, shallow).paths == ["committed"]


def test_a_new_branch_has_no_commit_before(root: Path) -> None:
    everything(changed_since(NO_COMMIT, root), "the branch is new")


def test_a_name_that_git_does_not_know_is_an_error(root: Path) -> None:
    with pytest.raises(UsageError, match="git knows no commit 'origin/mian'") as said:
        changed_since("origin/mian", root)
    assert "fetch" in str(said.value)
