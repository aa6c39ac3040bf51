"""The clone and the event that a run sees."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ci.workflows.repository import MAIN, NAME, TOKEN, Event, git, prepare
from toolchain.errors import UsageError


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A repository of two commits."""
    folder = tmp_path / "source"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch", "topic")
    for number in (1, 2):
        (folder / "file").write_text(str(number))
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "--message", str(number))
    return folder


def test_a_pull_request_has_its_merge_and_main_as_base(source: Path, tmp_path: Path) -> None:
    made = prepare(source, tmp_path / "run/clone", Event("pull_request"))
    refs = git(made.folder, "for-each-ref", "--format=%(refname) %(objectname)", "refs/heads", "refs/pull").splitlines()
    head, base = (git(source, "rev-parse", name) for name in ("HEAD", "HEAD^"))
    assert {f"refs/pull/7/merge {head}", f"{MAIN} {base}"} <= set(refs)
    document = json.loads(made.event.read_text())
    assert document["pull_request"]["base"]["sha"] == base and made.commit == head
    assert git(made.folder, "rev-parse", "HEAD") == head


@pytest.mark.parametrize("ref", [MAIN, "refs/heads/pull-request/7", "refs/tags/v1.2.3"])
def test_a_push_has_its_branch_or_tag(source: Path, tmp_path: Path, ref: str) -> None:
    made = prepare(source, tmp_path / "run/clone", Event("push", ref=ref))
    head = git(source, "rev-parse", "HEAD")
    assert git(made.folder, "rev-parse", ref) == git(made.folder, "rev-parse", "HEAD") == head
    document = json.loads(made.event.read_text())
    assert (document["ref"], document["before"], document["after"]) == (ref, git(source, "rev-parse", "HEAD^"), head)


def test_what_is_changed_and_not_committed_runs_too(source: Path, tmp_path: Path) -> None:
    (source / "file").write_text("changed")
    made = prepare(source, tmp_path / "run/clone", Event("schedule"))
    assert git(made.folder, "show", "HEAD:file") == "changed"
    assert git(source, "stash", "list") == ""


def test_inputs_of_a_run_by_hand_are_in_the_event(source: Path, tmp_path: Path) -> None:
    made = prepare(source, tmp_path / "run/clone", Event("workflow_dispatch", inputs={"ops": "gelu"}))
    assert json.loads(made.event.read_text())["inputs"] == {"ops": "gelu"}


@pytest.mark.parametrize(
    ("words", "said"), [(("issue",), "no event issue"), (("push", "HEAD^", "v1"), "v1 is no full")]
)
def test_bad_events_are_refused(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Event(*words)


def test_a_base_that_is_no_commit_is_refused(source: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nowhere"):
        prepare(source, tmp_path / "run/clone", Event("push", base="nowhere"))


def test_what_a_workflow_pushed_is_kept_and_there_the_next_time(source: Path, tmp_path: Path) -> None:
    made = prepare(source, tmp_path / "run/clone", Event("schedule"))
    assert made.keep_pushed(tmp_path / "pushed.git") == []
    settings = made.environment
    words = [f"{settings[f'GIT_CONFIG_KEY_{n}']}={settings[f'GIT_CONFIG_VALUE_{n}']}" for n in (0, 1)]
    url = f"https://x-access-token:{TOKEN}@github.com/{NAME}"
    git(source, "-c", words[0], "-c", words[1], "push", "--quiet", url, "HEAD:refs/heads/nights")
    assert made.keep_pushed(tmp_path / "pushed.git") == ["nights"]
    git(source, "fetch", "--quiet", str(tmp_path / "pushed.git"), "nights:nights")
    again = prepare(source, tmp_path / "again/clone", Event("schedule"))
    assert git(again.folder, "rev-parse", "refs/heads/nights") == git(source, "rev-parse", "HEAD")
