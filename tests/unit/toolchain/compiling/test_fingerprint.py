from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import grimp
import pytest

from toolchain.compiling import fingerprint as module
from toolchain.compiling.fingerprint import fingerprint
from toolchain.contract.entry import EntrySpec

SPEC = EntrySpec("gelu_f32", "gelu", "mlir", "f32", grid=("M", "1", "1"))


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """The hash is made anew in each test, and what these tests leave is not kept for others."""
    module._compiler.cache_clear()
    yield
    module._compiler.cache_clear()


@pytest.fixture
def toolchain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A toolchain of a few files."""
    files = [name if "." in name else f"{name}/one.py" for name in module.COMPILER]
    for name in (*files, "tileir/interpreter/one.py", "doctor.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("as it was")
    monkeypatch.setattr(module, "TOOLCHAIN", tmp_path)
    return tmp_path


def test_it_depends_on_the_entry_and_on_the_files_of_its_kernel(tmp_path: Path) -> None:
    kernel = tmp_path / "gelu.mlir"
    kernel.write_text("a kernel")
    first = fingerprint(SPEC, [kernel])
    assert fingerprint(SPEC, [kernel]) == first
    assert fingerprint(replace(SPEC, constants={"BN": 8}), [kernel]) != first
    assert fingerprint(SPEC, []) != first
    assert fingerprint(SPEC, [kernel], {"loop": "a part"}) != fingerprint(SPEC, [kernel], {"loop": "another"}) != first
    kernel.write_text("another")
    assert fingerprint(SPEC, [kernel]) != first


@pytest.mark.parametrize("name", ["tileir/passes/one.py", "contract/entry.py", "contract/ops.toml"])
def test_it_depends_on_our_compiler_and_on_the_layer_of_entries(toolchain: Path, name: str) -> None:
    first = fingerprint(SPEC, [])
    (toolchain / "doctor.py").write_text("changed")
    (toolchain / "tileir/interpreter/one.py").write_text("changed")
    module._compiler.cache_clear()
    assert fingerprint(SPEC, []) == first, "what has no part in it"
    (toolchain / name).write_text("changed")
    module._compiler.cache_clear()
    assert fingerprint(SPEC, []) != first


def test_it_covers_every_module_of_tile_ir_that_a_source_of_it_imports() -> None:
    graph = grimp.build_graph("toolchain", "kernels_mlir", "kernels_py", cache_dir=None)
    used = graph.find_upstream_modules("kernels_mlir") | graph.find_upstream_modules("kernels_py")
    for name in used & graph.find_descendants("toolchain.tileir"):
        path = Path(importlib.import_module(name).__file__ or "").relative_to(module.TOOLCHAIN)
        covered = path.name == "__init__.py" or {path.as_posix(), "/".join(path.parts[:2])} & set(module.COMPILER)
        assert covered, f"{name} may change what a kernel becomes"


@pytest.mark.parametrize("package", ["xdsl", "cuda-tile"])
def test_it_depends_on_the_packages_that_make_bytecode(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = fingerprint(SPEC, [])
    module._compiler.cache_clear()
    monkeypatch.setattr(module, "version", lambda name: "0" if name == package else version_of(name))
    assert fingerprint(SPEC, []) != first


version_of = module.version


def test_it_depends_on_the_packages_that_a_source_names(monkeypatch: pytest.MonkeyPatch) -> None:
    first = fingerprint(SPEC, [], packages=["llvmlite"])
    assert first != fingerprint(SPEC, [])
    assert fingerprint(SPEC, [], packages=["no-such-package"]) != first, "a package that is not installed counts too"
    monkeypatch.setattr(module, "version", lambda _: "0")
    assert fingerprint(SPEC, [], packages=["llvmlite"]) != first
