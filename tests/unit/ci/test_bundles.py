"""The bundles of this commit and of the one before."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from ci import bundles
from toolchain.caching.cache import Cache
from toolchain.caching.counts import Counts
from toolchain.errors import ToolchainError, UsageError


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Path]]:
    """What would be run, and where."""
    seen: list[tuple[str, Path]] = []
    monkeypatch.setattr(bundles, "run", lambda words, folder: seen.append((" ".join(map(str, words)), folder)))
    return seen


def test_both_commits_are_compiled_by_their_own_code_and_noted(ran: list[tuple[str, Path]]) -> None:
    assert bundles.main(["--target", "sm_90", "--base", "HEAD", "--nox", "/nox"]) == 0
    lines = [line for line, _ in ran]
    here, there = ran[0][1], ran[3][1]
    assert here != there and [folder for _, folder in ran] == [here, here, here, there, there, there, here]
    assert lines[0].endswith(f"-m tilestack compile --target sm_90 --output {here}/build/bundle")
    assert lines[1].endswith(f"-m benchmarks stamp --bundle {here}/build/bundle")
    assert lines[2].startswith(f"git worktree add --quiet --detach {there} ")
    assert lines[3] == "/nox -s build_toolchain"
    assert (
        lines[4]
        == f"{there}/.toolchain/venv/bin/python -m tilestack compile --target sm_90 --output {here}/build/before"
    )
    assert lines[6] == f"git worktree remove --force {there}"


def test_the_summary_says_what_the_cache_did_in_each_compile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TILESTACK_CACHE_DIR", str(tmp_path))
    Cache(tmp_path, counts=Counts(hits=9)).record()  # an older compile, as restored

    def compiled(words: list[str | Path], _: Path) -> None:
        if "compile" in words:
            Cache(tmp_path, counts=Counts(misses=4 if Path(words[-1]).name == "bundle" else 5)).record()

    monkeypatch.setattr(bundles, "run", compiled)
    summary = tmp_path / "summary.md"
    assert bundles.main(["--base", "HEAD", "--summary", str(summary)]) == 0
    rows = [line.split(" | ")[:4] for line in summary.read_text().splitlines()[4:6]]
    assert [row[1:] for row in rows] == [["0", "0", "4"], ["0", "0", "5"]]
    assert rows[0][0] == "| this commit"


def test_without_a_base_there_is_one_bundle(ran: list[tuple[str, Path]]) -> None:
    assert bundles.main(["--target", "sm_90", "--base", ""]) == 0
    assert len(ran) == 2


def test_a_commit_that_is_gone_is_replaced_by_the_one_before(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def git(words: list[str], **_: object) -> object:
        return SimpleNamespace(returncode=int(not words[-1].startswith("HEAD^^")), stdout="abc\n")

    monkeypatch.setattr(bundles.subprocess, "run", git)
    assert bundles.commit_of("gone") == "abc"
    assert "there is no commit gone: comparing with HEAD^" in capsys.readouterr().out
    monkeypatch.setattr(bundles.subprocess, "run", lambda *_, **__: SimpleNamespace(returncode=1))
    with pytest.raises(UsageError, match="neither a commit gone"):
        bundles.commit_of("gone")


def test_a_command_that_fails_ends_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match="exit code 3 from: sh -c exit 3"):
        bundles.run(["sh", "-c", "exit 3"], tmp_path)
