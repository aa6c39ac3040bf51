"""Mixed precision, torch.compile, random states and profilers in a program that `tilestack run` runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from toolchain.knobs import ROOT

PROGRAM = """
import torch
from torch.nn import functional as F
from torch.profiler import ProfilerActivity, profile
from torch.utils.checkpoint import checkpoint

x, w, b = (torch.randn(*shape, device="cuda") for shape in ((8, 16), (4, 16), (4,)))
h, q = x.half(), torch.randn(1, 2, 8, 16, device="cuda")
narrow = torch.zeros(1, 1, 4, 4, device="cuda")

def in_mixed_precision(dtype):
    y = x @ w.T
    exact = x.to(dtype).double() @ w.T.to(dtype).double()
    assert torch.allclose(y.double(), exact, rtol=2 * torch.finfo(dtype).eps, atol=1e-6)
    lower = [y, F.linear(x, w, b), torch.nn.Linear(16, 4).cuda()(x), torch.einsum("ik,jk->ij", x, w)]
    lower += [torch.addmm(b, x, w.T), torch.relu(y)]
    lower += [F.scaled_dot_product_attention(q, q, q), F.conv2d(narrow, narrow)]
    assert {each.dtype for each in lower} == {dtype}
    full = [F.softmax(y, -1), y.softmax(-1), torch.exp(y), F.mse_loss(y, y), F.layer_norm(y, (4,)), y**2, y.sum()]
    full += [torch.sum(input=y), x + 1, F.cross_entropy(y, torch.zeros(8, device="cuda", dtype=torch.long))]
    assert {each.dtype for each in full} == {torch.float32}
    assert (x.double() @ w.T.double()).dtype == torch.float64 and (x.cpu() + 1).is_cpu
    with torch.autocast("cuda", enabled=False):
        assert (x @ w.T).dtype == torch.float32

with torch.autocast("cuda"):
    in_mixed_precision(torch.float16)
torch.autocast("cuda", dtype=torch.bfloat16)(in_mixed_precision)(torch.bfloat16)
assert (x @ w.T).dtype == x.exp().dtype == torch.float32 and h.exp().dtype == torch.float16
assert not torch.is_autocast_enabled("cpu") and not torch.is_autocast_enabled("cuda")

model = torch.nn.Linear(16, 4).cuda()
optimizer, scaler = torch.optim.AdamW(model.parameters()), torch.amp.GradScaler("cuda")
with torch.autocast("cuda"):
    loss = model(x).square().mean()
scaler.scale(loss).backward()
scaler.step(optimizer)
scaler.update()

# The tensors of a call may be given by name.
for one, other in (
    (F.linear(x, weight=w, bias=b), F.linear(x, w, b)),
    (F.linear(input=h, weight=w.half()), F.linear(h, w.half())),
    (torch.mm(input=h, mat2=w.half().T), h @ w.half().T),
    (F.scaled_dot_product_attention(query=q, key=q, value=q), F.scaled_dot_product_attention(q, q, q)),
    (F.layer_norm(input=h, normalized_shape=(16,), weight=h[0]), F.layer_norm(h, (16,), h[0])),
):
    assert one.is_cuda and torch.equal(one, other)

for seed in (torch.cuda.manual_seed, torch.cuda.manual_seed_all, torch.manual_seed):
    drawn = [(seed(3), torch.rand(4, device="cuda"))[1] for _ in range(2)]
    assert torch.equal(*drawn)
state = torch.cuda.get_rng_state()
first = torch.rand(4, device="cuda")
torch.cuda.set_rng_state(state)
assert torch.equal(first, torch.rand(4, device="cuda"))
checkpoint(model, x, use_reentrant=False).sum().backward()

assert torch.compile(model) is model and torch.compile(fullgraph=True)(in_mixed_precision) is in_mixed_precision
model.compile()
torch.cuda.profiler.start()
torch.cuda.cudart().cudaProfilerStop()
with torch.cuda.nvtx.range("all"), profile(activities=[ProfilerActivity.CUDA]) as profiled:
    model(x)
assert profiled.key_averages()
assert torch.cuda.memory_stats()["allocated_bytes.all.current"] == 0 and torch.cuda.memory_summary()
assert torch.accelerator.current_accelerator() == torch.device("cuda") and torch.accelerator.is_available()
print("right")
"""


@pytest.mark.needs("interpreter", "torch")
def test_what_programs_use_beside_tensors(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    words = [sys.executable, "-m", "tilestack", "run", str(tmp_path / "program.py")]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["right"]), done.stderr
