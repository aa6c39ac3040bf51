"""Which versions fit together, by a table of the test, because the real one changes now and then."""

from __future__ import annotations

import copy
import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolchain.errors import ToolchainError, UsageError
from toolchain.pinned import stacks as module
from toolchain.pinned.stacks import Stacks, check, parse, stacks

from ..conftest import Git

FIRST, SECOND, THIRD = "aaaaaaaaa", "bbbbbbbbbbbb", "cccccccccccc"
TABLE: dict[str, Any] = {
    "native": {
        "default": "new",
        "stacks": {
            "old": {"cuda_tile": "1.0", "llvm": {"source": "22.1.8", "system": "22.1.8"}, "suite": "trixie"},
            "new": {"cuda_tile": "3.0", "llvm": {"source": "23.1.1", "system": "23.2.4"}, "suite": "sid"},
        },
        "llvm": {
            "22.1.8": [{"url": "https://there/a.tar.xz", "sha256": "1"}, {"debian": "pool/a.tar.xz", "sha256": "2"}],
            "23.1.1": [{"url": "https://there/b.tar.xz", "sha256": "3"}],
        },
        "cuda_tile": {
            version: {"url": "https://there/c.git", "mirrors": ["https://m"], "commit": "c", "tree": "t"}
            for version in ("1.0", "3.0")
        },
        "compatibility": [
            {"cuda_tile": "1.0", "commit": FIRST, "date": datetime.date(2026, 1, 10)},
            {"cuda_tile": "2.0", "commit": SECOND, "date": datetime.date(2026, 2, 10)},
            {"cuda_tile": "3.0", "commit": THIRD, "date": datetime.date(2026, 3, 10)},
        ],
    }
}


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Callable[[Stacks], None]:
    """Makes check() use other stacks."""
    return lambda known: monkeypatch.setattr(module, "stacks", lambda: known)


@pytest.fixture
def table(use: Callable[[Stacks], None]) -> Stacks:
    """The stacks of TABLE, which check() then uses."""
    use(parse(TABLE))
    return parse(TABLE)


def changed(*path: str | int, to: object) -> dict[str, Any]:
    """TABLE with another value at `path` in [native]."""
    made = copy.deepcopy(TABLE)
    row: Any = made["native"]
    for key in path[:-1]:
        row = row[key]
    row[path[-1]] = to
    return made


def test_a_table_is_parsed():
    known = parse(TABLE)
    assert known.stack().name == "new"
    assert known.stack("old").series == "22"
    assert known.stack().series == "23"
    assert [archive.debian for archive in known.llvm["22.1.8"]] == [None, "pool/a.tar.xz"]
    assert known.cuda_tile["3.0"].mirrors == ("https://m",)
    with pytest.raises(UsageError, match=r"no stack 'other'(.|\n)*one of old, new"):
        known.stack("other")


@pytest.mark.parametrize(
    ("path", "to", "said"),
    [
        (("stacks", "old", "llvm", "source"), "22.1.9", "stack old names a source that is not pinned"),
        (("stacks", "new", "cuda_tile"), "2.0", "stack new names a source that is not pinned"),
        (("compatibility", 1, "date"), datetime.date(2026, 3, 11), "not in the order of their dates"),
        (("default",), "newest", "the default is 'newest', which is not a stack"),
    ],
)
def test_what_does_not_fit_together_is_refused(path: tuple[str | int, ...], to: object, said: str):
    with pytest.raises(ToolchainError, match=said):
        parse(changed(*path, to=to))


def test_a_system_llvm_needs_no_archive():
    assert parse(changed("stacks", "old", "llvm", "system", to="22.9.9")).stack("old").series == "22"


def test_the_pins_themselves_parse():
    known = stacks()
    assert known.stack().name == known.default
    assert {stack.cuda_tile for stack in known.stacks.values()} <= {row.cuda_tile for row in known.intervals}


VERSIONS = [
    ("22.1.8", "1.0", "old", "pins it as its source LLVM"),
    ("llvmorg-22.1.8", "1.0", "old", "pins it as its source LLVM"),
    ("23.2.4", "3.0", "new", "pins it as its system LLVM"),
    ("23.1.7", "3.0", "new", "series of 23.1.1 and 23.2.4, not itself pinned"),
    ("22.1", "1.0", "old", "series of 22.1.8, not itself pinned"),
    ("22", "1.0", "old", "series of 22.1.8"),
    ("22.10.8", None, None, "llvm_canary"),
    ("22.2.8", None, None, "llvm_canary"),
    ("2", None, None, "llvm_canary"),
    ("24.1.0", None, None, "llvm_canary"),
]


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(("llvm", "cuda_tile", "stack", "why"), VERSIONS)
def test_a_version(llvm: str, cuda_tile: str | None, stack: str | None, why: str):
    found = check(llvm)
    assert (found.llvm, found.cuda_tile, found.stack) == (llvm.removeprefix("llvmorg-"), cuda_tile, stack)
    assert why in found.why


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize("commit", [THIRD, THIRD[:7], THIRD + "0" * 28])
def test_a_commit_that_starts_an_interval_needs_no_place(commit: str):
    found = check(commit)
    assert (found.llvm, found.cuda_tile, found.stack) == (commit, "3.0", "new")
    assert "first commit that v3.0 builds with" in found.why


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(
    ("date", "cuda_tile", "stack"),
    [
        ("2026-01-09", None, None),
        ("2026-01-10", "1.0", "old"),
        ("2026-02-09", "1.0", "old"),
        ("2026-02-10", "2.0", None),  # a cuda-tile that no stack has
        ("2027-01-01", "3.0", "new"),
    ],
)
def test_a_commit_by_its_date(date: str, cuda_tile: str | None, stack: str | None):
    found = check("1234567", date=datetime.date.fromisoformat(date))
    assert (found.cuda_tile, found.stack) == (cuda_tile, stack)
    assert f"by its date, {date}" in found.why
    if cuda_tile is None:
        assert f"older than {FIRST}" in found.why


@pytest.fixture
def clone(tmp_path: Path, git: Git) -> Path:
    (tmp_path / "clone").mkdir()
    git(tmp_path / "clone", "init", "-q", "-b", "main")
    return tmp_path / "clone"


def test_a_commit_by_the_history_of_a_clone(clone: Path, git: Git, use: Callable[[Stacks], None]):
    def commit(name: str) -> str:
        git(clone, "commit", "-q", "--allow-empty", "-m", name)
        return git(clone, "rev-parse", "HEAD")

    before, first, between, second, after = map(commit, ("before", "first", "between", "second", "after"))
    git(clone, "checkout", "-q", "-b", "side", between)  # newer than `second`, but without it
    side = commit("side")
    rows = [
        {"cuda_tile": "1.0", "commit": first, "date": datetime.date(2026, 1, 10)},
        {"cuda_tile": "3.0", "commit": second[:12], "date": datetime.date(2026, 3, 10)},
    ]
    use(parse(changed("compatibility", to=rows)))
    found = {llvm: check(llvm, clone=clone) for llvm in (before, first, between[:9], side, second, after)}
    assert [fit.cuda_tile for fit in found.values()] == [None, "1.0", "1.0", "1.0", "3.0", "3.0"]
    assert f"by the history in {clone}" in found[side].why


@pytest.mark.usefixtures("table")
def test_a_clone_without_the_commit_is_named(clone: Path, tmp_path: Path):
    with pytest.raises(UsageError, match=r"merge-base(.|\n)*full clone of llvm-project"):
        check("1234567", clone=clone)
    with pytest.raises(UsageError, match=r"none(.|\n)*full clone"):
        check("1234567", clone=tmp_path / "none")


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize("llvm", ["", "main", "22.1.8.1", "22.", "v22.1.8", "12345", "ABCDEF0", "0" * 41, "222.1"])
def test_what_is_neither_version_nor_commit(llvm: str):
    with pytest.raises(UsageError, match=r"neither an LLVM version nor a commit(.|\n)*22.1.8, or 7 to 40"):
        check(llvm)


@pytest.mark.usefixtures("table")
def test_a_commit_alone_has_no_place():
    with pytest.raises(
        UsageError, match=r"not the start of a known interval(.|\n)*--date YYYY-MM-DD, or(.|\n)*--llvm-clone"
    ):
        check("1234567")
