"""GPT-2 in PyTorch with products of 8-bit floats (e4m3), as PyTorch's users make them by `torch._scaled_mm`: a scale
for each row of x, found when the product is made, and one for each output of the weight. All else is `torch_gpt`'s, in
bf16. Norms and rounding become one kernel if the model is compiled."""

from __future__ import annotations

from collections.abc import Iterable

from gpt.config import GPTConfig

from .pytorch import Tensor, functional, nn, torch
from .torch_gpt import TorchGPT

LARGEST = 448.0  # of e4m3
SMALLEST_SCALE = 2.0**-126  # of a row of zeros, as quantize_rows has it


def rounded(x: Tensor) -> tuple[Tensor, Tensor]:
    """Rows (M, K) as e4m3, and their scales (M, 1) in f32."""
    wide = x.float()
    scales = (wide.abs().amax(1, keepdim=True) / LARGEST).clamp(min=SMALLEST_SCALE)
    return (wide / scales).clamp(-LARGEST, LARGEST).to(torch.float8_e4m3fn), scales


class LinearF8(nn.Module):
    """x @ weight.T + bias, both rounded to e4m3, with sums in the tensor cores' fast way. `weight`: (out, in)."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        super().__init__()
        self.narrow, scales = rounded(weight)
        self.scales, self.bias = scales.t().contiguous(), bias

    def forward(self, x: Tensor) -> Tensor:
        rows, scales = rounded(x.reshape(-1, x.shape[-1]))
        made = torch._scaled_mm(  # noqa: SLF001 - the one way to it
            rows, self.narrow.t(), scales, self.scales, bias=self.bias, out_dtype=x.dtype, use_fast_accum=True
        )
        return made.view(*x.shape[:-1], -1)

    def gelu(self, x: Tensor, *, fused: bool) -> Tensor:
        """With the tanh GELU. A product of 8 bits has none in the same call."""
        del fused
        return functional.gelu(self(x), approximate="tanh")


class TorchGPTF8(TorchGPT):
    """`head`: the product that makes logits, if it has 8 bits too."""

    head: LinearF8 | None = None

    def logits(self, x: Tensor) -> Tensor:
        return super().logits(x) if self.head is None else self.head(self.ln_f(x))


def build(config: GPTConfig, tensors: Iterable[tuple[str, Tensor]], *, logits: bool) -> TorchGPTF8:
    """A model with these tensors, by `torch_gpt.state`'s names, in bf16, whose products have 8 bits. `logits`: that of
    the embedding too."""
    with torch.device("meta"):
        model = TorchGPTF8(config)
    model.load_state_dict({name: value.to(torch.bfloat16) for name, value in tensors}, assign=True)
    model.requires_grad_(requires_grad=False)
    for block in model.h:
        for products in (block.attn, block.mlp):
            for name, plain in products.items():
                products[name] = LinearF8(plain.weight, plain.bias)
    if logits:
        model.head = LinearF8(model.wte.weight)
    return model.eval()
