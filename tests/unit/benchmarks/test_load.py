from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import load
from gpt.parameters import weights


def test_each_step_is_timed_and_so_is_their_sum() -> None:
    _, _, folder = weights.load(weights.SHIPPED)
    *steps, together = load.measure(folder, 2)
    assert [step.name for step in steps] == ["read and check", "fold norms", "convert to bf16"]
    assert {row.samples for row in (*steps, together)} == {2} and all(step.median > 0 for step in steps)
    assert together.median >= max(step.median for step in steps)


def test_a_preset_is_written_and_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["load", "nano"])
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    load.main()
    assert len(capsys.readouterr().out.splitlines()) == 4
    assert not list(tmp_path.iterdir())
