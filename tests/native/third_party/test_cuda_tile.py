"""The recipe of cuda-tile, for real, with a stand-in for its source: Conan builds and tests a package in a container.

The stand-in has the tools of the version that it plays, as scripts that take the options of the real ones.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from toolchain.errors import ToolFailed
from toolchain.knobs import ROOT
from toolchain.native.build import CHECKOUT

from .conftest import Bench, git

pytestmark = [pytest.mark.needs("engine"), pytest.mark.needs("native")]

PROJECT = """\
cmake_minimum_required(VERSION 3.20)
project(stand-in LANGUAGES NONE)
if(NOT EXISTS ${CUDA_TILE_USE_LLVM_INSTALL_DIR}/lib/cmake/mlir/MLIRConfig.cmake)
  message(FATAL_ERROR "no MLIR in ${CUDA_TILE_USE_LLVM_INSTALL_DIR}")
endif()
file(GLOB tools ${CMAKE_SOURCE_DIR}/tools/*)
file(COPY ${tools} DESTINATION ${CMAKE_BINARY_DIR}/bin)
install(FILES LICENSE.TXT DESTINATION share)
"""
HEAD = """\
#!/usr/bin/env python3
import sys
from pathlib import Path
MAGIC = b"\\x7fTileIR\\0"
options = [word for word in sys.argv[1:] if word.startswith("-")]
output = Path(sys.argv[sys.argv.index("-o") + 1]) if "-o" in options else None
given = next(Path(word) for word in sys.argv[1:] if not word.startswith("-"))
"""
TOOLS = {
    "cuda-tile-opt": "given.read_text()\n",
    "cuda-tile-translate": """
if "--mlir-to-cudatilebc" in options:
    output.write_bytes(MAGIC + given.read_bytes())
else:
    print(given.read_bytes().removeprefix(MAGIC).decode())
""",
    "cuda-tile-optimize": """
data = given.read_bytes()
output.write_bytes(data if "--emit-bytecode" in options else data.removeprefix(MAGIC))
""",
}
OPTIMIZER = "cuda-tile-optimize"


def create(bench: Bench, version: str, tools: list[str]) -> Path:
    """Build and test the package of that version with these tools; returns the recipe's folder, as the test sees it.

    Raises ToolFailed. The recipe is ours but for the pins of its source."""
    source = bench.mirror / "cuda-tile"
    shutil.rmtree(source, ignore_errors=True)
    (source / "tools").mkdir(parents=True)
    (source / "CMakeLists.txt").write_text(PROJECT)
    (source / "LICENSE.TXT").write_text(f"{version}\n")
    for name in tools:
        (source / "tools" / name).write_text(HEAD + TOOLS[name])
        (source / "tools" / name).chmod(0o755)
    git(source, "init", "-q")
    git(source, "add", ".")
    git(source, "commit", "-q", "-m", "all")
    pins = {"url": "https://nowhere.invalid/cuda-tile.git", "mirrors": []}
    pins |= {"commit": git(source, "rev-parse", "HEAD"), "tree": git(source, "rev-parse", "HEAD^{tree}")}
    recipe = bench.recipe / "cuda_tile"
    shutil.rmtree(recipe, ignore_errors=True)
    shutil.copytree(ROOT / "third_party/cuda_tile", recipe)
    (recipe / "conandata.yml").write_text(json.dumps({"sources": {version: pins}, "patches": {}}))
    options = ["-o", "llvm/*:provider=system", "-o", "cuda_tile/*:llvm=22.1.8"]
    settings = ["-c", "user.tilestack:source_mirror=/mirror", "-c", "tools.cmake.cmake_layout:test_folder=/work/test"]
    common = ["--no-remote", "-pr:a", f"{CHECKOUT}/toolchain/profiles/trixie"]
    bench.run(bench.conan, "export", f"{CHECKOUT}/third_party/llvm", "--version", "22.1.8")
    bench.run(
        bench.conan, "create", "/recipe/cuda_tile", "--version", version, "--build", "missing", *options, *settings,
        *common,
    )  # fmt: skip
    return recipe


def test_a_version_before_the_optimizer_needs_none(bench: Bench):
    create(bench, "13.1.3", [name for name in TOOLS if name != OPTIMIZER])


def test_a_version_with_the_optimizer_is_tested_with_it_and_the_checkout_is_not_written_to(bench: Bench):
    recipe = create(bench, "13.3.2", list(TOOLS))
    files = {path.relative_to(recipe) for path in recipe.rglob("*")}
    ours = ROOT / "third_party/cuda_tile"
    assert files == {path.relative_to(ours) for path in ours.rglob("*") if "__pycache__" not in path.parts}


@pytest.mark.parametrize(
    ("version", "missing"), [("13.3.2", OPTIMIZER), ("13.3.2", "cuda-tile-opt"), ("13.1.3", "cuda-tile-translate")]
)
def test_a_tool_that_the_version_has_and_the_build_did_not_make_is_an_error(bench: Bench, version: str, missing: str):
    with pytest.raises(ToolFailed, match=f"the build made no {missing}"):
        create(bench, version, [name for name in TOOLS if name != missing])
