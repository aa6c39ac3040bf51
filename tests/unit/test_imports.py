"""Our imports have no circle, and the pictures of them in docs/architecture.md are true.

An import inside a function or under TYPE_CHECKING counts like any other."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest

from toolchain.knobs import ROOT

LINTER = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
PACKAGES: list[str] = LINTER["root_packages"]
LAYERS: list[str] = next(contract["layers"] for contract in LINTER["contracts"] if contract["type"] == "layers")
# What has a picture of its own, in their order.
ROOMS = ("toolchain", "toolchain.tileir", "toolchain.cute", "gpt", "kernels_py", "conformance", "tilestack.api")


def require_no_circle(*packages: str) -> None:
    """Raises CycleError with one circle of imports, if there is any."""
    graph = grimp.build_graph(*packages, cache_dir=None)
    TopologicalSorter({name: graph.find_modules_directly_imported_by(name) for name in graph.modules}).prepare()


def test_our_imports_have_no_circle() -> None:
    require_no_circle(*PACKAGES)


def folder_arrows(*packages: str) -> dict[str, dict[str, set[str]]]:
    """For each folder at any depth: which of what lies directly in it imports which other. A folder in it counts as
    one, with all that it holds."""
    graph = grimp.build_graph(*packages, cache_dir=None)
    arrows: dict[str, dict[str, set[str]]] = {}
    for importer in graph.modules:
        for imported in graph.find_modules_directly_imported_by(importer):
            near, far = importer.split("."), imported.split(".")
            depth = next((i for i, (a, b) in enumerate(zip(near, far, strict=False)) if a != b), 0)
            if depth:  # both lie in one folder; a folder's own module imports what lies in it
                near_in, far_in = (".".join(parts[: depth + 1]) for parts in (near, far))
                arrows.setdefault(".".join(near[:depth]), {}).setdefault(near_in, set()).add(far_in)
    return arrows


@pytest.mark.parametrize("package", PACKAGES)
def test_no_folder_imports_another_in_a_circle_at_any_depth(package: str) -> None:
    for arrows in folder_arrows(package).values():
        TopologicalSorter(arrows).prepare()


def test_a_circle_of_folders_is_found_where_no_modules_make_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in {
        "": "", "deep": "", "deep.one": "", "deep.two": "", "deep.one.a": "from ..two.b import B\n",
        "deep.two.b": "B = 1\n", "deep.two.c": "from ..one.d import D\n", "deep.one.d": "D = 1\n",
    }.items():  # fmt: skip
        path = tmp_path.joinpath("rooms", *filter(None, name.split(".")))
        file = path.with_suffix(".py") if name[-1:] in "abcd" and "." in name[5:] else path / "__init__.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    require_no_circle("rooms")
    with pytest.raises(CycleError, match=r"rooms\.deep\.one"):
        TopologicalSorter(folder_arrows("rooms")["rooms.deep"]).prepare()


def drawn_arrows(number: int = 0) -> set[tuple[str, str]]:
    """The arrows of an import picture in docs/architecture.md: (importer, imported)."""
    pictures = re.findall(r"```mermaid\n(.*?)```", (ROOT / "docs/architecture.md").read_text(), re.DOTALL)
    return set(re.findall(r"^ *(\w+) --> (\w+)$", pictures[number], re.MULTILINE))


def needed(arrows: Mapping[str, set[str]]) -> set[tuple[str, str]]:
    """The arrows that no other ones imply."""

    def reached(name: str) -> set[str]:
        return {far for near in arrows.get(name, ()) for far in (near, *reached(near))}

    implied = {name: {far for near in imported for far in reached(near)} for name, imported in arrows.items()}
    return {(name, imported) for name in arrows for imported in arrows[name] - implied[name]}


def test_the_import_picture_shows_the_imports_that_no_other_arrows_imply() -> None:
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    for package in PACKAGES:
        graph.squash_module(package)
    assert drawn_arrows() == needed(
        {package: graph.find_modules_directly_imported_by(package) - {package} for package in PACKAGES}
    )


@pytest.mark.parametrize(("number", "folder"), [*enumerate(ROOMS, 1)])
def test_a_picture_of_rooms_shows_the_folders_in_one(number: int, folder: str) -> None:
    arrows = folder_arrows(folder.partition(".")[0])[folder]
    names = {*arrows, *(name for imported in arrows.values() for name in imported)}
    rooms = {name: name.rpartition(".")[2] for name in names if (ROOT / name.replace(".", "/")).is_dir()}
    between = {rooms[name]: {rooms[n] for n in arrows.get(name, ()) if n in rooms} for name in rooms}
    assert drawn_arrows(number) == needed(between)


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
