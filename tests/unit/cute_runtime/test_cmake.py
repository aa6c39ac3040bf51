"""find_package(cute_runtime): what an installed library tells CMake."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

import pytest

from cute_runtime.headers import HEADERS, include_dirs
from toolchain.knobs import ROOT

PROJECT = """
cmake_minimum_required(VERSION 3.15)
project(user LANGUAGES CXX)
find_package(cute_runtime 0.1 CONFIG REQUIRED)
add_executable(user user.cpp)
target_link_libraries(user PRIVATE cute_runtime::cute_runtime)
"""
PROGRAM = """
#include <cute_runtime/cute_runtime.hpp>
#include <iostream>
int main() { std::cout << cute_runtime::Arch::parse("sm_90a").name(); }
"""
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def cmake(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["cmake", *words], capture_output=True, text=True, check=False)


@pytest.mark.needs("g++", "cmake")
def test_an_installed_library_is_found_and_built_against(tmp_path: Path) -> None:
    installed, user = tmp_path / "installed", tmp_path / "user"
    assert cmake("-S", HEADERS.parent, "-B", tmp_path / "build").returncode == 0
    assert cmake("--install", tmp_path / "build", "--prefix", installed).returncode == 0
    user.mkdir()
    (user / "CMakeLists.txt").write_text(PROJECT)
    (user / "user.cpp").write_text(PROGRAM)
    configure = ("-S", user, "-B", user / "build", f"-DCMAKE_PREFIX_PATH={installed}")
    refused = cmake(*configure, "-DCMAKE_IGNORE_PATH=/usr/local/cuda/include;/usr/include")
    assert refused.returncode and "no cuda.h: install a CUDA toolkit" in refused.stderr
    assert cmake(*configure, f"-DCUTE_RUNTIME_CUDA_INCLUDE_DIR={include_dirs()[1]}").returncode == 0
    built = cmake("--build", user / "build")
    assert built.returncode == 0, built.stderr
    done = subprocess.run([user / "build" / "user"], capture_output=True, text=True, check=True)
    assert done.stdout == "sm_90a"


@pytest.mark.parametrize(("file", "says"), [("CMakeLists.txt", "VERSION {} "), ("conanfile.py", 'version = "{}"')])
def test_the_version_is_the_projects(file: str, says: str) -> None:
    assert says.format(VERSION) in (HEADERS.parent / file).read_text()
