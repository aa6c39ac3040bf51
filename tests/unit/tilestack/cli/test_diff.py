"""`tilestack diff`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tilestack.__main__ import main


def test_a_bundle_is_as_itself(one_cubin: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [tmp_path / "comment.md", tmp_path / "page.html"]
    assert main(["diff", one_cubin, one_cubin, "--json", "--markdown", str(files[0]), "--html", str(files[1])]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["identical"], shown["changed"]) == (1, [])
    assert all("0 suspicious" in file.read_text() for file in files)


def test_a_target_that_no_bundle_has(one_cubin: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", one_cubin, one_cubin, "--target", "sm_80"]) == 2
    assert "has cubins for sm_90" in capsys.readouterr().err
