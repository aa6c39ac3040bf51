from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.unit.processes import ends
from toolchain import doctor
from toolchain.errors import ToolchainError, ToolFailed
from toolchain.pinned.manifest import Manifest
from toolchain.pinned.tools import Tool, stop_all, tool


@pytest.fixture
def forgotten() -> Iterator[None]:
    """Forgets the tools found so far, before and after the test, so that they are looked for again."""
    tool.cache_clear()
    yield
    tool.cache_clear()


def system(path: str) -> Tool:
    """A program of the system, run the way that the toolchain's tools are."""
    return Tool(Path(path).name, Path(path), "1.2", "sha", "fingerprint")


def test_a_tool_sees_nothing_of_the_callers_environment(monkeypatch: pytest.MonkeyPatch):
    for name in ("CUDA_HOME", "LD_LIBRARY_PATH", "NVCC_APPEND_FLAGS", "TILEIRAS_NVJITLINK_TRACE"):
        monkeypatch.setenv(name, "/leak")
    lines = system("/usr/bin/env").run([]).stdout.split()
    assert sorted(lines)[:2] == ["LC_ALL=C", "PATH=/usr/bin"] and len(lines) == 3


def test_a_tools_temporary_files_go_when_it_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    said = system("/bin/sh").run(["-c", "touch $TMPDIR/left; echo $TMPDIR"]).stdout
    assert Path(said.strip()).parent == tmp_path and not list(tmp_path.iterdir())
    with pytest.raises(ToolFailed):
        system("/bin/sh").run(["-c", "touch $TMPDIR/left; exit 1"])
    assert not list(tmp_path.iterdir())


def test_a_tool_that_is_stopped_fails_and_takes_its_children_along(tmp_path: Path):
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(system("/bin/sh").run, ["-c", f"sleep 99 & echo $! > {tmp_path}/child; wait"])
        while not (tmp_path / "child").exists() or not (child := (tmp_path / "child").read_text()):
            assert not running.done()
            time.sleep(0.01)
        while not running.done():  # it may not be among those that run yet
            stop_all()
        with pytest.raises(ToolFailed):
            running.result(timeout=60)
    assert ends(int(child))


@pytest.mark.parametrize(
    ("content", "mode", "said"),
    [
        ("#!/bin/sh\n", 0o644, "Permission denied\n  next: chmod +x "),
        ("no program", 0o755, "Exec format error\n  next: it is"),
    ],
)
def test_a_tool_that_cannot_be_started(content: str, mode: int, said: str, tmp_path: Path):
    path = tmp_path / "tileiras"
    path.write_text(content)
    path.chmod(mode)
    with pytest.raises(ToolchainError) as caught:
        system(str(path)).run([])
    assert f"{path} (tileiras 1.2) cannot be started: {said}" in str(caught.value)


def test_a_failing_tool_keeps_command_stderr_and_version(tmp_path: Path):
    with pytest.raises(ToolFailed) as caught:
        system("/bin/sh").run(["-c", "echo out; echo broken >&2; exit 3"], cwd=tmp_path)
    error = caught.value
    assert (error.returncode, error.stderr, error.version) == (3, "broken\n", "sh 1.2")
    assert all(part in str(error) for part in ("/bin/sh -c", "exited 3", "broken"))


def test_input_reaches_the_tool_and_none_is_empty():
    assert system("/bin/cat").run([], input="text").stdout == "text"
    assert system("/bin/cat").run([]).stdout == ""


def test_an_unknown_tool_is_an_error_that_lists_the_known():
    with pytest.raises(ToolchainError, match="tileirdisasm"):
        tool("nvcc")


@pytest.mark.usefixtures("forgotten")
def test_a_toolchain_built_before_a_tool_was_pinned_is_to_be_built_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TILESTACK_TOOLCHAIN", str(tmp_path))
    Manifest("older", "3.11.2", {}).save(tmp_path)
    with pytest.raises(ToolchainError, match=r"built for other pins .*: tileiras differs") as caught:
        tool("tileiras")
    assert "nox -s build_toolchain" in str(caught.value)
    (line,) = (line for line in doctor.checks() if line.subject == "tileiras")
    assert line.status == "bad" and "nox -s build_toolchain" in line.advice
