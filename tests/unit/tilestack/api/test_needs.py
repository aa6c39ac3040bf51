from __future__ import annotations

import io
import time

import pytest

from tilestack.api import needs
from toolchain.errors import ToolchainError


def test_a_missing_package_is_named() -> None:
    message = r"(?s)a dream needs the package no_such_package.*next: "
    with pytest.raises(ToolchainError, match=message), needs.packages_for("a dream"):
        __import__("no_such_package")


def test_a_module_of_ours_that_is_missing_is_a_defect() -> None:
    with pytest.raises(ModuleNotFoundError), needs.packages_for("a dream"):
        __import__("toolchain.no_such_module")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_is_shown_on_a_terminal_once_work_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(needs, "PATIENCE_S", 0.0)
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with needs.shown_if_long("compiling k for sm_90"):
        for _ in range(1200):  # until the other thread has shown it
            if "compiling k for sm_90" in terminal.getvalue():
                break
            time.sleep(0.05)
    assert "compiling k for sm_90" in terminal.getvalue()
    monkeypatch.setattr(needs, "PATIENCE_S", 60.0)
    quick = Terminal()
    monkeypatch.setattr("sys.stderr", quick)
    with needs.shown_if_long("compiling k for sm_90"):
        pass
    assert "compiling" not in quick.getvalue()


def test_elsewhere_nothing_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with needs.shown_if_long("compiling k for sm_90"):
        pass
    assert capsys.readouterr().err == ""
