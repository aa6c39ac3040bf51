"""An ordinary project that finds MLIR with CMake configures in the images that have Debian's LLVM.

LLVM's export files name libraries of others, such as zlib and zstd. CMake looks for them again in every project, and
stops when it generates a target that links one that is not installed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from toolchain.native.engine import Container, Engine
from toolchain.native.images import image
from toolchain.native.make_images import ensure
from toolchain.pinned.stacks import stacks

pytestmark = pytest.mark.needs("llvm-images")

PROJECT = """\
cmake_minimum_required(VERSION 3.20)
project(everything LANGUAGES C CXX)
find_package(MLIR REQUIRED CONFIG)
get_property(mlir GLOBAL PROPERTY MLIR_ALL_LIBS)
file(WRITE ${CMAKE_BINARY_DIR}/main.cpp "int main() {}")
foreach(library ${mlir} ${LLVM_AVAILABLE_LIBS})
  add_executable(with-${library} ${CMAKE_BINARY_DIR}/main.cpp)
  target_link_libraries(with-${library} PRIVATE ${library})
endforeach()
"""


@pytest.mark.parametrize("name", stacks().stacks)
def test_a_project_that_links_every_library_of_mlir_and_llvm_configures(name: str, tmp_path: Path):
    stack, engine = stacks().stack(name), Engine.find()
    source, build = tmp_path / "source", tmp_path / "build"
    source.mkdir()
    build.mkdir()
    (source / "CMakeLists.txt").write_text(PROJECT)
    mounts = {source: ("/source", "ro"), build: ("/build", "rw")}
    container = Container(ensure(engine, image(f"llvm-{stack.series}")), mounts=mounts)
    mlir = f"-DMLIR_DIR=/usr/lib/llvm-{stack.series}/lib/cmake/mlir"
    said = engine.run(container, ["cmake", "-G", "Ninja", "-S", "/source", "-B", "/build", mlir])
    assert "Could NOT find" not in said
    made = (build / "build.ninja").read_text()
    for library in ("MLIRIR", "MLIRExecutionEngine", "LLVMSupport", "LLVMLineEditor", "LLVMDebuginfod"):
        assert f"build with-{library}: CXX_EXECUTABLE_LINKER" in made
