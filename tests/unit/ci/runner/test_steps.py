"""Steps look first, act only where something is missing, and say what they would do."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from ci.runner.steps import Command, Fetch, Result, Step, Write, follow
from toolchain.errors import ToolchainError


def touch(path: Path) -> Step:
    return Step(path.name, lambda: "" if path.exists() else f"no {path}", (Command(["touch", str(path)]),))


def states(results: list[Result]) -> list[str]:
    return [result.state for result in results]


def test_a_step_acts_once(tmp_path: Path) -> None:
    said: list[Result] = []
    assert states(follow([touch(tmp_path / "a")], dry=False, say=said.append)) == ["done"]
    assert states(follow([touch(tmp_path / "a")], dry=False, say=said.append)) == ["ok"]
    assert [list(result.lines) for result in said] == [[f"touch {tmp_path / 'a'}"], []]


def test_a_dry_run_changes_nothing(tmp_path: Path) -> None:
    (result,) = follow([touch(tmp_path / "a")], dry=True, say=str)
    assert (result.state, list(result.lines)) == ("would", [f"touch {tmp_path / 'a'}"])
    assert not (tmp_path / "a").exists()


def test_a_step_that_fails_ends_those_that_need_it(tmp_path: Path) -> None:
    bad = Step("bad", lambda: "nothing there", (Command(["sh", "-c", "echo why >&2; exit 3"]),), "do this")
    needs = Step("needs", lambda: "", needs=("bad",))
    results = follow(
        [bad, needs, Step("also", lambda: "", needs=("needs",)), touch(tmp_path / "a")], dry=False, say=str
    )
    assert states(results) == ["missing", "not run", "not run", "done"]
    assert results[0].lines[0] == "nothing there" and results[0].lines[-1] == "next: do this"
    assert any("why" in line for line in results[0].lines)
    assert list(results[1].lines) == ["needs bad"]


def test_actions_that_do_not_help_are_no_success() -> None:
    (result,) = follow([Step("a", lambda: "still gone", (Command(["true"]),), "look")], dry=False, say=str)
    assert result.state == "missing" and list(result.lines) == ["after 1 actions: still gone", "next: look"]


def test_what_only_the_operator_can_do() -> None:
    (result,) = follow([Step("driver", lambda: "no driver", advice="install it")], dry=True, say=str)
    assert result.state == "missing" and list(result.lines) == ["no driver", "next: install it"]


def test_a_file_is_written_again_when_its_content_or_mode_differs(tmp_path: Path) -> None:
    file = Write(tmp_path / "folder/a", b"1", 0o755)
    assert not file.there()
    file.act()
    assert file.there()
    file.path.chmod(0o644)
    assert not file.there()


def test_only_the_pinned_bytes_are_kept(tmp_path: Path) -> None:
    source, path = tmp_path / "source", tmp_path / "state/archive.tar.gz"
    source.write_bytes(b"runner")
    right = Fetch(str(source), path, hashlib.sha256(b"runner").hexdigest())
    with pytest.raises(ToolchainError, match=r"has sha256 .*, not 0000"):
        Fetch(str(source), path, "0" * 64).act()
    assert list(path.parent.iterdir()) == []
    right.act()
    assert right.there() and path.read_bytes() == b"runner"
    path.write_bytes(b"changed")
    assert not right.there()


def test_what_cannot_be_fetched(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match=r"cannot be fetched.*\n.*--archive FILE"):
        Fetch(str(tmp_path / "none"), tmp_path / "a", "0").act()
