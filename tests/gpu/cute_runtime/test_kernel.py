"""A kernel on a GPU: through numpy, device buffers, another library's arrays, and C++."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cute_runtime import DeviceBuffer, Kernel, get_device_info, include_dirs
from toolchain.errors import LaunchError

pytestmark = pytest.mark.needs("gpu")

# x[i] *= by for i < n
PTX = """.version 8.0
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 x, .param .u32 n, .param .f32 by)
{
  .reg .pred %p;
  .reg .b32 %r<3>;
  .reg .b64 %rd<3>;
  .reg .f32 %f<3>;
  mov.u32 %r1, %tid.x;
  ld.param.u32 %r2, [n];
  setp.ge.u32 %p, %r1, %r2;
  @%p ret;
  ld.param.u64 %rd1, [x];
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd1, %rd1, %rd2;
  ld.global.f32 %f1, [%rd1];
  ld.param.f32 %f2, [by];
  mul.f32 %f1, %f1, %f2;
  st.global.f32 [%rd1], %f1;
  ret;
}
"""
PROGRAM = """
#include <cute_runtime/cute_runtime.hpp>
#include <iostream>
int main(int, char** words) try {
  using namespace cute_runtime;
  const Device gpu(0);
  auto kernel = KernelExecutor::from_file(gpu, words[1], "scale");
  DeviceBuffer<float> x(gpu, std::vector<float>{1, 2, 3});
  kernel.launch({{1}, {128}}, x, std::int32_t{3}, 2.0f);
  for (const float value : x.to_host()) std::cout << value << " ";
} catch (const cute_runtime::Error& error) {
  std::cout << error.what();
}
"""
VALUES = [1.0, 2.0, 3.0]


@pytest.fixture
def scale() -> Kernel:
    return Kernel().load_ptx(PTX).set_kernel("scale")


def test_numpy_and_device_buffers(scale: Kernel) -> None:
    assert get_device_info().arch.startswith("sm_")
    assert scale.parameter_sizes == (8, 4, 4)
    array = np.array(VALUES, np.float32)
    scale.launch((array, 3, 2.0), (1,), (128,))
    assert array.tolist() == [2, 4, 6]
    buffer = DeviceBuffer.from_numpy(array)
    scale.launch((buffer, 2, 0.5), (1,), (128,))
    scale.launch((buffer.pointer, 1, 10.0), (1,), (128,))
    assert buffer.numpy().tolist() == [10, 2, 6]
    with pytest.raises(LaunchError, match="has 3 parameters"):
        scale.launch((buffer, 2), (1,), (128,))


@pytest.mark.needs("torch")
def test_an_array_of_pytorch(scale: Kernel) -> None:
    import torch

    tensor: Any = torch.tensor(VALUES, device="cuda:0")
    scale.launch((tensor, 3, 2.0), (1,), (128,))
    assert (tensor + 1).tolist() == [3, 5, 7]


@pytest.mark.needs("g++")
def test_a_program_in_cpp(tmp_path: Path) -> None:
    (tmp_path / "scale.ptx").write_text(PTX)
    (tmp_path / "program.cpp").write_text(PROGRAM)
    includes = [f"-I{path}" for path in include_dirs()]
    program = tmp_path / "program"
    subprocess.run(["g++", "-std=c++17", *includes, tmp_path / "program.cpp", "-o", program, "-ldl"], check=True)
    done = subprocess.run([program, tmp_path / "scale.ptx"], capture_output=True, text=True, check=True)
    assert done.stdout == "2 4 6 "
