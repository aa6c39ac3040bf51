"""A kernel of your own as an operator of PyTorch, which torch.compile takes into its graphs.

    python examples/09_torch_custom_op.py

The gate of a model's MLP, silu(gate) * up, reads two tensors and writes one. PyTorch makes two launches of it, this
kernel one. The example needs PyTorch. It runs on tensors of a GPU, or without one on the interpreter. What the
arguments of `as_torch_op` mean stands in docs/python-torch.md.
"""

from __future__ import annotations

import cuda.tile as ct

import tilestack as ts

TILE = 256


@ct.kernel
def gated(gate, up, out, TILE: ct.Constant[int]):
    block, zero = ct.bid(0), ct.PaddingMode.ZERO
    g = ct.load(gate, index=(block,), shape=(TILE,), padding_mode=zero)
    u = ct.load(up, index=(block,), shape=(TILE,), padding_mode=zero)
    ct.store(out, index=(block,), tile=g / (1.0 + ct.exp(-g)) * u)


def main() -> None:
    try:
        import torch
    except ModuleNotFoundError as error:
        raise SystemExit("this example needs PyTorch, which is not installed: pip install torch") from error

    operator = ts.load(gated).as_torch_op(
        "examples::gated",
        grid=lambda gate, _: -(-gate.numel() // TILE),
        outputs={"out": lambda gate, _: torch.empty_like(gate)},  # on what torch.compile traces with, too
        TILE=TILE,
    )
    device = "cuda" if torch.cuda.is_available() else "cpu"
    print(f"on {ts.device_name()}")
    gate, up = torch.randn(2, 5000, generator=torch.Generator().manual_seed(0)).to(device)
    wanted = torch.nn.functional.silu(gate) * up
    print("largest difference from PyTorch:", (operator(gate, up) - wanted).abs().max().item())
    torch.library.opcheck(operator, (gate, up))  # PyTorch's own check of an operator

    @torch.compile(backend="aot_eager", fullgraph=True)  # the default backend too; it needs a C++ compiler
    def mlp(gate, up):
        return operator(gate, up).sum()

    print("compiled, largest difference from PyTorch:", (mlp(gate, up) - wanted.sum()).abs().item())


if __name__ == "__main__":
    main()
