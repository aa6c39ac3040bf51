"""Hooks that follow an import."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from toolchain.emulation.imports import when_imported


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "hooked_once.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "hooked_once", raising=False)
    return "hooked_once"


def test_a_hook_sees_the_module_after_its_code_has_run(module: str) -> None:
    seen: list[int] = []
    when_imported(module, lambda m: seen.append(m.value))
    assert not seen
    importlib.import_module(module)
    assert seen == [1]
    del sys.modules[module]
    importlib.import_module(module)
    assert seen == [1]  # a hook is called once


def test_of_an_imported_module_it_is_called_at_once() -> None:
    seen: list[str] = []
    when_imported("json", lambda m: seen.append(m.__name__))
    assert seen == ["json"]


def test_the_import_raises_what_the_hook_raises(module: str) -> None:
    def fail(_: object) -> None:
        raise ValueError("of the hook")

    when_imported(module, fail)
    with pytest.raises(ValueError, match="of the hook"):
        importlib.import_module(module)
