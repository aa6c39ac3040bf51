"""`tilestack bisect`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ci.diff import commits
from ci.diff.commits import BisectResult, Step
from tilestack.__main__ import main


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["bisect"], "same cubins"),
        (["bisect", "--target", "sm_90"], "give all of them, or none"),
    ],
)
def test_what_cannot_be_taken_apart(
    words: list[str], said: str, one_cubin: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([words[0], one_cubin, one_cubin, *words[1:]]) == 2
    assert said in capsys.readouterr().err


def test_the_commit_that_made_it_is_told_in_words_or_as_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[tuple[str, str, str]] = []

    def bisect_commits(good: str, bad: str, cell: str, *_: Any) -> BisectResult:
        asked.append((good, bad, cell))
        return BisectResult(("c" * 40,), ("Change it",), (Step("c" * 40, True, "other code"),))

    monkeypatch.setattr(commits, "bisect_commits", bisect_commits)
    words = ["bisect", "v0.1", "HEAD", "--commits", "--source", "mlir", "--entry", "gelu_any_f32"]
    assert main([*words, "--target", "sm_90"]) == 0
    assert capsys.readouterr().out.endswith("made by: cccccccccccc Change it\n")
    assert main([*words, "--target", "sm_90", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["subjects"] == ["Change it"]
    assert asked == [("v0.1", "HEAD", "mlir/gelu_any_f32 sm_90")] * 2
    assert main(words) == 2 and "--commits compiles one kernel" in capsys.readouterr().err
