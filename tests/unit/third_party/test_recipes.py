"""Compares the recipes with the pins, as far as that is possible without Conan."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

from toolchain.knobs import ROOT
from toolchain.native.ptx import PTX_FEATURES
from toolchain.native.recipes import LOCKFILE, RECIPES
from toolchain.pinned.stacks import stacks

LOCK = json.loads(LOCKFILE.read_text())
SCRIPTS = sorted([ROOT / "conanfile.py", *RECIPES.rglob("*.py")])


def locked(kind: str = "requires") -> dict[str, str]:
    """The revisions in conan.lock, by name/version."""
    return {reference.partition("#")[0]: reference.partition("#")[2] for reference in LOCK[kind]}


def constant(path: Path, name: str) -> object:
    """The value of a constant of a module that cannot be imported here."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and [getattr(target, "id", "") for target in node.targets] == [name]:
            return ast.literal_eval(node.value)
    raise AssertionError(f"{path}: no {name}")


def test_the_lock_names_each_version_of_each_stack_and_none_that_is_not_pinned():
    known = stacks()
    used = {f"llvm/{version}" for stack in known.stacks.values() for version in stack.llvm.values()}
    used |= {f"cuda_tile/{stack.cuda_tile}" for stack in known.stacks.values()}
    pinned = used | {f"llvm/{version}" for version in known.llvm}
    pinned |= {f"cuda_tile/{version}" for version in known.cuda_tile}
    assert used <= locked().keys() <= pinned, "run nox -s update_pins"


def test_the_lock_has_one_revision_of_each_and_no_times():
    for kind in ("requires", "python_requires"):
        assert len(locked(kind)) == len(LOCK[kind])
        assert all(re.fullmatch("[0-9a-f]{32}", revision) for revision in locked(kind).values()), kind


def test_a_source_is_pinned_by_its_hashes():
    known = stacks()
    archives = [archive for rows in known.llvm.values() for archive in rows]
    assert all(re.fullmatch("[0-9a-f]{64}", archive.sha256) for archive in archives)
    assert all((archive.url is None) != (archive.debian is None) for archive in archives)
    for source in known.cuda_tile.values():
        assert re.fullmatch("[0-9a-f]{40}", source.commit)
        assert re.fullmatch("[0-9a-f]{40}", source.tree)


def test_the_sources_helper_that_recipes_ask_for_is_ours():
    helper = (RECIPES / "sources/conanfile.py").read_text()
    (version,) = re.findall(r'^    version = "(.*)"', helper, re.MULTILINE)
    (wanted,) = locked("python_requires")
    assert wanted == f"tilestack_sources/{version}"
    asked = [re.findall(r'python_requires = "(.*)"', path.read_text()) for path in SCRIPTS]
    assert {reference for found in asked for reference in found} == {wanted}


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_recipe_is_python_and_imports_nothing_of_ours(path: Path):
    for node in ast.walk(ast.parse(path.read_text(), feature_version=(3, 11))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
        assert [name for name in names if name.partition(".")[0] in ("ci", "gpt", "tilestack", "toolchain")] == []


@pytest.mark.parametrize("recipe", ["llvm", "cuda_tile"])
def test_a_listed_patch_is_there(recipe: str):
    text = (RECIPES / recipe / "conandata.yml").read_text()
    patches = json.loads(text.partition("\n")[2])["patches"]
    files = [row["patch_file"] for rows in patches.values() for row in rows]
    assert [file for file in files if not (RECIPES / recipe / file).is_file()] == []


def test_llvms_own_test_tries_the_chips_that_we_lower_to():
    assert constant(RECIPES / "llvm/test_package/conanfile.py", "TARGETS") == PTX_FEATURES


@pytest.mark.parametrize("suite", sorted({stack.suite for stack in stacks().stacks.values()} | {"trixie"}))
def test_the_debian_of_each_stack_has_a_profile(suite: str):
    assert "[settings]" in (ROOT / "toolchain/profiles" / suite).read_text()
