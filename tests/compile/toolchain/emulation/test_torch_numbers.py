"""Tensors that pose as CUDA's, and the sums of a GPU's libraries, in a program that `tilestack run` runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from toolchain.knobs import ROOT

PROGRAM = """
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import layer_norm, scaled_dot_product_attention

torch.manual_seed(0)

def made(*shape, dtype=torch.float32):
    return torch.randn(*shape, device="cuda", dtype=dtype, requires_grad=True)

def exact(function, *tensors):
    # The value and the gradients in float64, on the CPU.
    wide = [each.detach().cpu().double().requires_grad_() for each in tensors]
    value = function(*wide)
    value.sum().backward()
    return [value, *(each.grad for each in wide)]

def compare(function, *tensors, bound):
    value = function(*tensors)
    value.sum().backward()
    assert value.is_cuda and value.dtype == tensors[0].dtype
    for found, wanted in zip([value, *(each.grad for each in tensors)], exact(function, *tensors), strict=True):
        worst = float(((found.cpu().double() - wanted).abs() / wanted.abs().clamp(min=1)).max())
        assert worst <= bound, (worst, bound)

half, ulp = made(64, 768, dtype=torch.float16), 2**-11
compare(torch.matmul, half, made(768, 64, dtype=torch.float16), bound=1.01 * ulp)

for function in (torch.mm, torch.matmul):
    place = torch.zeros(2, 2, device="cuda", dtype=torch.float16)
    assert function(*[torch.ones(2, 2, device="cuda", dtype=torch.float16)] * 2, out=place) is place
    assert (place == 2).all() and place.is_cuda

# A CPU's own gradients of the weights are wrong by more than 0.5 here.
def normed(x, weight, bias):
    return layer_norm(x, (64,), weight, bias)

x, weight, bias = (made(*shape, dtype=torch.bfloat16) for shape in ((1024, 64), (64,), (64,)))
compare(normed, x, weight, bias, bound=2**-7)

# TF32 has 10 bits behind the point.
torch.backends.cuda.matmul.allow_tf32 = True
ones = torch.ones(1, 1, device="cuda")
for value, rounded in ((1 + 2**-11, 1), (1 + 3 * 2**-11, 1 + 2**-9), (float("inf"), float("inf"))):
    assert float(torch.full((1, 1), value, device="cuda") @ ones) == rounded, value
    assert float(torch.full((1, 1), value) @ torch.ones(1, 1)) == value
torch.backends.cuda.matmul.allow_tf32 = False
assert float(torch.full((1, 1), 1 + 2**-11, device="cuda") @ ones) == 1 + 2**-11

# Square roots are the nearest, and truth values have magnitudes.
many = torch.rand(4096, device="cuda") * 100
assert (many.sqrt() == many.double().sqrt().float()).all()
assert (abs(many > 50) == (many > 50)).all() and torch.abs(many > 50).is_cuda

q = torch.randn(1, 2, 8, 16, device="cuda", dtype=torch.float16)
with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
    assert scaled_dot_product_attention(q, q, q).dtype == torch.float16

# Moves, with all that may be said of them.
c = torch.ones(2, dtype=torch.float16)
for moved in (x.to("cuda", None, True), x.to(None, torch.bfloat16), x.to(device=None, dtype=None), x.to(x)):
    assert moved is x
assert x.to(torch.float32, True).is_cuda and x.to("cpu", torch.float32, copy=True).is_cpu
assert x.to(c).is_cpu and x.to(c).dtype == torch.float16
assert torch.nn.Linear(2, 2).to("cuda", non_blocking=True).weight.is_cuda
print("right")
"""


@pytest.mark.needs("interpreter", "torch")
def test_what_is_compared_with_a_kernel_is_as_on_a_gpu(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    words = [sys.executable, "-m", "tilestack", "run", str(tmp_path / "program.py")]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
    assert (done.returncode, done.stdout) == (0, "right\n"), done.stderr
