"""Our imports have no circle, and the picture of them in docs/architecture.md is true.

An import inside a function or under TYPE_CHECKING counts like any other."""

from __future__ import annotations

import re
import sys
import tomllib
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest

from toolchain.knobs import ROOT

LINTER = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
PACKAGES: list[str] = LINTER["root_packages"]
LAYERS: list[str] = next(contract["layers"] for contract in LINTER["contracts"] if contract["type"] == "layers")


def require_no_circle(*packages: str) -> None:
    """Raises CycleError with one circle of imports, if there is any."""
    graph = grimp.build_graph(*packages, cache_dir=None)
    TopologicalSorter({name: graph.find_modules_directly_imported_by(name) for name in graph.modules}).prepare()


def test_our_imports_have_no_circle() -> None:
    require_no_circle(*PACKAGES)


def drawn_arrows() -> set[tuple[str, str]]:
    """The arrows of the import picture in docs/architecture.md: (importer, imported)."""
    (picture,) = re.findall(r"```mermaid\n(.*?)```", (ROOT / "docs/architecture.md").read_text(), re.DOTALL)
    return set(re.findall(r"^ *(\w+) --> (\w+)$", picture, re.MULTILINE))


def test_the_import_picture_shows_the_imports_that_no_other_arrows_imply() -> None:
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    for package in PACKAGES:
        graph.squash_module(package)
    imported = {package: graph.find_modules_directly_imported_by(package) - {package} for package in PACKAGES}
    implied = {
        package: {far for near in imported[package] for far in graph.find_upstream_modules(near)}
        for package in PACKAGES
    }  # fmt: skip
    assert drawn_arrows() == {(package, name) for package in PACKAGES for name in imported[package] - implied[package]}


def test_the_import_picture_has_all_packages_of_the_contract_and_its_arrows_lead_to_lower_layers() -> None:
    depth = {name: level for level, layer in enumerate(LAYERS) for name in layer.split(" | ")}
    arrows = drawn_arrows()
    assert {name for arrow in arrows for name in arrow} == depth.keys() == set(PACKAGES)
    assert all(depth[importer] < depth[imported] for importer, imported in arrows)


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
