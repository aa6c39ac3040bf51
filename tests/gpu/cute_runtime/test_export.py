"""An entry of a bundle, launched from C++ and from Python: the same numbers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from cute_runtime import include_dirs
from cute_runtime.export.header import Export, choose
from toolchain.bundles.bundle import Bundle
from toolchain.runtime import Executor, Launcher

M, N = 37, 200
PROGRAM = """
#include "kernels.hpp"
#include <fstream>
#include <iostream>
int main(int, char** words) try {
  using namespace cute_runtime;
  const Device gpu(0);
  std::vector<float> values(37 * 200);
  std::ifstream(words[1], std::ios::binary).read(reinterpret_cast<char*>(values.data()), 4 * 37 * 200);
  DeviceBuffer<float> x(gpu, values), out(gpu, values.size());
  tilestack_kernels::Kernels kernels(gpu, words[3]);
  kernels.gelu_f32(Array<float, 2>::of(x, {37, 200}), Array<float, 2>::of(out, {37, 200}));
  out.copy_to(values);
  std::ofstream(words[2], std::ios::binary).write(reinterpret_cast<char*>(values.data()), 4 * 37 * 200);
} catch (const cute_runtime::Error& error) {
  std::cerr << error.what() << "\\n";
  return 1;
}
"""


@pytest.mark.needs("gpu", "g++")
def test_gelu(bundle: Bundle, cuda: Executor, tmp_path: Path) -> None:
    source, target, entries = choose(bundle, bundle.sources[0], cuda.target, ("gelu",), ("f32",))
    header = Export(bundle, source, target, entries, "tilestack_kernels", embed=False).text()
    (tmp_path / "kernels.hpp").write_text(header)
    (tmp_path / "program.cpp").write_text(PROGRAM)
    values = np.random.default_rng(0).standard_normal((M, N), np.float32)
    (tmp_path / "x").write_bytes(values.tobytes())
    includes = [f"-I{path}" for path in include_dirs()]
    program = tmp_path / "program"
    subprocess.run(["g++", "-std=c++17", *includes, tmp_path / "program.cpp", "-o", program, "-ldl"], check=True)
    subprocess.run([program, tmp_path / "x", tmp_path / "out", bundle.root], check=True)
    x, out = cuda.from_numpy(values), cuda.empty((M, N), "f32")
    Launcher(bundle, source, cuda)("gelu", "f32", x=x, out=out)
    found = np.frombuffer((tmp_path / "out").read_bytes(), np.float32).reshape(M, N)
    assert np.array_equal(found, out.numpy())
