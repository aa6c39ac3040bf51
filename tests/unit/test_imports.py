"""No module needs itself through others: an import inside a function or under TYPE_CHECKING counts like any other."""

from __future__ import annotations

import sys
import tomllib
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest

from toolchain.knobs import ROOT


def require_no_circle(*packages: str) -> None:
    """Raises CycleError with one circle of imports, if there is any."""
    graph = grimp.build_graph(*packages, cache_dir=None)
    TopologicalSorter({name: graph.find_modules_directly_imported_by(name) for name in graph.modules}).prepare()


def test_our_imports_have_no_circle() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    require_no_circle(*settings["tool"]["importlinter"]["root_packages"])


@pytest.mark.parametrize(
    "hidden", ["from .a import A", "if TYPE_CHECKING:\n    from .a import A", "def f():\n    from .a import A"]
)
def test_a_circle_is_found_wherever_it_hides(hidden: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "round_and_round"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "a.py").write_text("from .b import B\n")
    (package / "b.py").write_text(f"from typing import TYPE_CHECKING\n{hidden}\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(CycleError, match=r"round_and_round\.a"):
        require_no_circle(package.name)
    assert package.name not in sys.modules  # it is read, never run
