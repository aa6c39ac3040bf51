from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from toolchain import doctor
from toolchain.errors import ToolchainError, ToolFailed
from toolchain.manifest import Manifest
from toolchain.tools import Tool, tool


@pytest.fixture
def forgotten() -> Iterator[None]:
    """Forgets the tools found so far, before and after the test, so that they are looked for again."""
    tool.cache_clear()
    yield
    tool.cache_clear()


def system(path: str) -> Tool:
    """A program of the system, run the way that the toolchain's tools are."""
    return Tool(Path(path).name, Path(path), "1.2", "sha", "fingerprint")


def test_a_tool_sees_nothing_of_the_callers_environment_but_tmpdir(monkeypatch: pytest.MonkeyPatch):
    for name in ("CUDA_HOME", "LD_LIBRARY_PATH", "NVCC_APPEND_FLAGS", "TILEIRAS_NVJITLINK_TRACE"):
        monkeypatch.setenv(name, "/leak")
    monkeypatch.setenv("TMPDIR", "/some/where")
    lines = system("/usr/bin/env").run([]).stdout.split()
    assert sorted(lines) == ["LC_ALL=C", "PATH=/usr/bin", "TMPDIR=/some/where"]


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
