"""The sessions of noxfile.py, with a stand-in for nox, which the toolchain's environment does not have."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from toolchain.knobs import ROOT


@pytest.fixture
def menu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    nox: Any = ModuleType("nox")
    nox.session, nox.options = _session, SimpleNamespace()
    monkeypatch.setitem(sys.modules, "nox", nox)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("TILESTACK_TOOLCHAIN", str(tmp_path))
    return runpy.run_path(str(ROOT / "noxfile.py"))


def _session(function: Callable[..., None] | None = None, **_: Any) -> Any:
    return function or _session


def ran(function: Callable[..., None], *posargs: str) -> list[tuple[str, ...]]:
    commands: list[tuple[str, ...]] = []

    def run(*command: str, **_: Mapping[str, str]) -> None:
        commands.append(command)

    function(SimpleNamespace(posargs=list(posargs), run=run))
    return commands


def test_sessions_use_the_toolchain_that_the_environment_names(menu: dict[str, Any], tmp_path: Path) -> None:
    commands = ran(menu["lint"]) + ran(menu["tests"]) + ran(menu["bench"])
    assert {Path(command[0]).parent for command in commands} == {tmp_path / "venv/bin"}


@pytest.mark.parametrize("container", [(), ("--container",)])
def test_gpu_tests_pass_their_options_on(menu: dict[str, Any], container: tuple[str, ...]) -> None:
    compiled, matrix = ran(menu["gpu_tests"], *container, "--op", "linear")
    assert compiled[3:] == ("compile", "--op", "linear", "--force", "--output", "build/ops-bundle")
    assert matrix[matrix.index("--bundle") + 1] == "build/ops-bundle"
    assert matrix[-2:] == ("--op", "linear")
    assert ("toolchain.native.gpu" in matrix) == bool(container)
    assert "--container" not in matrix


def test_gpu_tests_compile_the_ops_that_are_checked_alone(menu: dict[str, Any]) -> None:
    words = ["--executor", "cpu", "--source", "mlir", "--op", "gelu", "--op", "softmax", "-k", "bf16"]
    compiled, matrix = ran(menu["gpu_tests"], *words)
    assert compiled[3:-3] == ("compile", "--no-targets", "--op", "gelu", "--op", "softmax")
    assert matrix[-len(words) :] == tuple(words)
    assert ran(menu["gpu_tests"])[0][3:] == ("compile", "--output", "build/bundle")
