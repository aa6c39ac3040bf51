"""`tilestack bisect`."""

from __future__ import annotations

import pytest

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
