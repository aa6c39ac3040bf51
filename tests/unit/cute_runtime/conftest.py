"""Building C++ against the header library, and running it over a CUDA driver that only records."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cute_runtime import device
from cute_runtime.headers import include_dirs
from toolchain.runtime import GPU, cuda_driver

from .fake import FakeGPU

HERE = Path(__file__).parent / "cpp"
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror")


@dataclass(frozen=True)
class Driver:
    """A folder with a libcuda.so.1 that stands for NVIDIA's (see stub_driver.c)."""

    folder: Path

    def run(self, program: Path, *words: str, stdin: str = "", **settings: str) -> str:
        """What a program and the driver print. Only an exit code of 0 or 1 (an Error, which is printed) is taken."""
        found = {**os.environ, "LD_LIBRARY_PATH": str(self.folder), **settings}
        done = subprocess.run([program, *words], input=stdin, capture_output=True, text=True, env=found, check=False)
        assert done.returncode in (0, 1), done
        return done.stdout


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Driver:
    folder = tmp_path_factory.mktemp("driver")
    command = ("gcc", "-shared", "-fPIC", *system_headers(), HERE / "stub_driver.c", "-o", folder / "libcuda.so.1")
    subprocess.run(command, check=True)
    return Driver(folder)


def system_headers() -> list[str]:
    """The compiler's options for our headers, with all warnings, and for cuda.h, without."""
    ours, *others = include_dirs()
    return [f"-I{ours}", *(word for path in others for word in ("-isystem", str(path)))]


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Builds a C++17 program of one file, without any warning."""

    def build(source: Path, compiler: str = "g++") -> Path:
        made = tmp_path_factory.mktemp(source.stem) / source.stem
        command = (compiler, "-std=c++17", *WARNINGS, *system_headers(), source, "-o", made, "-ldl")
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return made

    return build


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Generator[FakeGPU]:
    """A GPU that the Python API finds; a test sets the sizes of its kernels' parameters."""
    fake = FakeGPU()
    monkeypatch.setattr(cuda_driver, "load", lambda: fake)
    monkeypatch.setattr(device, "load", lambda: fake)
    for module in (cuda_driver, device):
        monkeypatch.setattr(module, "describe", lambda *_: GPU(0, "NVIDIA H200", (9, 0), 132, 141 * 2**30))
    device.executor.cache_clear()
    yield fake
    device.executor.cache_clear()
