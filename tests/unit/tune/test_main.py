"""python -m tune: its message and exit code when it cannot measure."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tune import command
from tune.__main__ import main


def raising(error: BaseException) -> Callable[..., bool]:
    def measure(*_: object) -> bool:
        raise error

    return measure


@pytest.mark.parametrize(("finished", "code"), [(True, 0), (False, 1)])
def test_its_exit_code_says_whether_all_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, finished: bool, code: int
) -> None:
    monkeypatch.setattr(command, "measure", lambda *_: finished)
    assert main(["measure", str(tmp_path)]) == code


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (OSError(28, "No space left on device", "measured.json"), 1, "No space left on device: 'measured.json'"),
        (
            ModuleNotFoundError("no", name="ml_dtypes"),
            4,
            f"needs ml_dtypes, which {sys.executable} lacks\n  next: inst",
        ),
        (KeyboardInterrupt(), 130, "interrupted: run it again to go on"),
    ],
)
def test_what_ends_it_is_a_message(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    code: int,
    said: str,
) -> None:
    monkeypatch.setattr(command, "measure", raising(error))
    assert main(["measure", str(tmp_path)]) == code
    assert said in capsys.readouterr().err


def test_bad_input_is_a_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "README.md").touch()
    assert main(["measure", str(tmp_path / "README.md")]) == 2
    assert "error: " in (said := capsys.readouterr().err) and "README.md/variants.json: no such file" in said


def test_a_module_of_ours_that_is_missing_is_a_bug(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "measure", raising(ModuleNotFoundError("no", name="gpt.nothing")))
    with pytest.raises(ModuleNotFoundError):
        main(["measure", str(tmp_path)])
