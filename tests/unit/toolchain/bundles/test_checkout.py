"""The commit of a checkout, and its note in a bundle."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from unittest.mock import ANY

import pytest

from toolchain.bundles import checkout as checkouts
from toolchain.bundles.bundle import Bundle, write
from toolchain.errors import UsageError


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    return write(tmp_path / "bundle", [], {"tileiras": {"version": "13.5", "sha256": "ab"}})


def test_the_commit_of_a_clean_checkout(checkout: Path, bundle: Bundle) -> None:
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=checkout, check=True, capture_output=True, text=True)
    assert checkouts.commit(bundle.root) == {"commit": head.stdout.strip(), "changes": ""}
    (checkout / "benchmarks/results/gpu.json").write_text("{}")  # a result changes nothing that was measured
    assert checkouts.commit(bundle.root)["changes"] == ""


def test_changes_have_a_digest(checkout: Path, bundle: Bundle) -> None:
    found: list[str] = []
    for content in ("two", "three", "two"):
        (checkout / "kernels/one.mlir").write_text(content)
        found.append(checkouts.commit(bundle.root)["changes"])
    assert found[0] == found[2] != found[1]
    (checkout / "kernels/new.mlir").write_text("new")
    assert checkouts.commit(bundle.root)["changes"] not in ("", *found)


def test_what_is_new_beside_the_folders_of_the_commit_changes_nothing(checkout: Path, bundle: Bundle) -> None:
    """For example the output of a run, and other files that are written while it runs."""
    (checkout / "out/parts/0").mkdir(parents=True)
    (checkout / "out/parts/0/gpu.json").write_text("{}")
    (checkout / "run.log").write_text("[1/2]")
    assert checkouts.commit(bundle.root)["changes"] == ""


def test_whatever_is_new_in_a_tree_is_part_of_its_digest(checkout: Path, bundle: Bundle) -> None:
    """A name that git quotes, links that lead nowhere, a clone in the clone."""
    found: list[str] = []

    def changes() -> None:
        found.append(checkouts.commit(bundle.root)["changes"])

    (checkout / "kernels/größe \n.mlir").write_text("new")
    changes()
    link = checkout / "kernels/link"
    for target in ("nowhere", "elsewhere"):
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        changes()
    subprocess.run(["git", "init", "-q", "kernels/clone"], cwd=checkout, check=True)
    (checkout / "kernels/clone/inside").write_text("")
    changes()
    assert len(set(found)) == 4
    assert "" not in found


@pytest.mark.parametrize("command", ["rev-parse", "diff", "ls-tree", "ls-files"])
def test_a_git_that_fails_is_no_clean_tree(
    checkout: Path, bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    real, folder = shutil.which("git"), tmp_path / "bin"
    folder.mkdir()
    broken = folder / "git"
    broken.write_text(f'#!/bin/sh\n[ "$1" = {command} ] && {{ echo "bad index" >&2; exit 128; }}\nexec {real} "$@"\n')
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    with pytest.raises(UsageError, match=rf"git {command}(.|\n)*{checkout}(.|\n)*bad index"):
        checkouts.commit(bundle.root)


def test_without_git_the_stamp_serves(checkout: Path, bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    checkouts.stamp(bundle.root)
    wanted = checkouts.commit(bundle.root)
    monkeypatch.setenv("PATH", "")
    assert (checkout / ".git").exists()
    assert checkouts.commit(bundle.root) == wanted


def test_a_stamp_serves_where_there_is_no_checkout(
    checkout: Path, bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = checkouts.commit(bundle.root)
    checkouts.stamp(bundle.root)
    assert Bundle.load(bundle.root).entries == bundle.entries
    stamped = {f"bundle_{name}": value for name, value in wanted.items()}
    (checkout / "kernels/one.mlir").write_text("another")
    assert checkouts.commit(bundle.root) == {"commit": wanted["commit"], "changes": ANY, **stamped}
    assert checkouts.commit(bundle.root)["changes"] != wanted["changes"]
    monkeypatch.setattr(checkouts, "ROOT", tmp_path)
    assert checkouts.commit(bundle.root) == {**wanted, **stamped}
    (bundle.root / checkouts.COMMIT).write_text("[]")
    assert checkouts.commit(bundle.root) == {"commit": "", "changes": ""}
    with pytest.raises(UsageError, match="not a git checkout"):
        checkouts.stamp(bundle.root)


@pytest.mark.usefixtures("checkout")
def test_a_stamp_wants_a_bundle(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no bundle"):
        checkouts.stamp(tmp_path / "nothing")
