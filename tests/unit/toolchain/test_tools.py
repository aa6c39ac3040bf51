from __future__ import annotations

from pathlib import Path

import pytest

from toolchain.errors import ToolchainError, ToolFailed
from toolchain.tools import Tool, tool


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
