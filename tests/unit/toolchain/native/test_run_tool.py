"""The folders of this machine that a tool's container sees. Containers are run in tests/native."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolchain.errors import UsageError
from toolchain.native.run_tool import folders


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A machine's top-level folders."""
    for name in ("data/models", "etc", "home/me/work", "tmp", "usr/share"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "a file").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("words", "seen"),
    [
        ([], ["home"]),
        (["x.mlir", "-o", "out/y.mlir", "--verify-each"], ["home"]),
        (["{root}/tmp/x.mlir"], ["home", "tmp"]),
        (["--input-file={root}/tmp/x"], ["home", "tmp"]),
        (["-I{root}/data/models", "-o", "{root}/tmp/y"], ["data", "home", "tmp"]),
        (["../../../data/x.mlir"], ["data", "home"]),
        (["link/x.mlir"], ["data", "home"]),
        (["{root}/usr/share/x.mlir", "{root}/nowhere/x", "{root}/a file"], ["home"]),
        (["--pass-pipeline=builtin.module(gpu.module(a{{b=c}},d/e))", "x" * 5000, "=", "/", "--"], ["home"]),
    ],
)
def test_the_folders_that_an_argument_names_are_seen(root: Path, words: list[str], seen: list[str]):
    (root / "home/me/work/link").symlink_to(root / "data/models")
    found = folders(root / "home/me/work", [word.format(root=root) for word in words], root)
    assert [path.name for path in found] == seen


def test_at_the_root_nothing_is_seen_that_is_not_named(root: Path):
    assert folders(root, [], root) == []
    assert folders(root, ["tmp/x.mlir"], root) == [root / "tmp"]


def test_a_folder_that_the_image_has_itself_is_refused(root: Path):
    with pytest.raises(UsageError, match=r"usr/share is not visible in the container, which has its own usr\n  next: "):
        folders(root / "usr/share", [], root)
