"""`python -m benchmarks.collectives` without GPUs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks.collectives import __main__ as program
from toolchain.errors import ToolchainError, UsageError


def test_results_are_shown_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = {"side": "ours", "collective": "all_reduce", "nbytes": 1024, "variant": "one", "us": 4.0, "low": 4, "high": 4}
    results = tmp_path / "results.json"
    results.write_text(json.dumps({"environment": {"gpus": "2 x Test"}, "rows": [row]}))
    assert program.main(["table", str(results)]) == 0
    assert "| 1 KB | 4 ± 0 |" in capsys.readouterr().out
    assert program.main(["plot", str(results), "-o", str(tmp_path / "x.svg")]) == 0
    assert (tmp_path / "x.svg").read_text().startswith("<svg")


def test_processes_that_are_not_as_many_as_the_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("WORLD_SIZE", "3"), ("RANK", "1"), ("LOCAL_RANK", "1")):
        monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match="2 devices for 3 processes"):
        program._opened(2)


@pytest.mark.parametrize(
    ("code", "limit_s", "said"),
    [("import time; time.sleep(600)", 0.5, "longer than 0.5 s"), ("exit(3)", 60, "code 3")],
)
def test_peers_that_hang_or_fail_are_an_error(
    code: str, limit_s: float, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!{sys.executable}\n{code}\n")
    python.chmod(0o755)
    monkeypatch.setattr(program.sys, "executable", str(python))
    with pytest.raises(ToolchainError, match=said):
        program._peers(2, ["all_reduce"], limit_s)
