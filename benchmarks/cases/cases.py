"""The cases that are measured. Each has a name that `--case` can match, and states the least work it needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from gpt.config import LLAMAS, PRESETS, GPTConfig

from .roofline import Work, decode_work, forward_work, op_work

Group = Literal["forward", "decode", "ops", "scaling", "larger", "llama"]
GROUPS: tuple[Group, ...] = ("forward", "decode", "ops", "scaling", "larger", "llama")
DEFAULT_GROUPS: tuple[Group, ...] = GROUPS[:-1]  # llama's peer needs transformers, which the others do without
DTYPE = "bf16"
# GPT-2 124M with a longer context. There are no trained weights for it, but times do not depend on the weights.
LONG = replace(PRESETS["gpt2"], n_ctx=8192)
MODELS: Mapping[str, GPTConfig] = {
    **PRESETS, "gpt2-8k": LONG, "smollm2": LLAMAS["smollm2"], "nano-llama": LLAMAS["nano"],
}  # fmt: skip


@dataclass(frozen=True)
class OpCase:
    """One op at one set of sizes."""

    op: str
    dims: Mapping[str, int]
    dtype: str = DTYPE
    group: Group = "ops"

    @property
    def shape(self) -> str:
        return " ".join(f"{name}={size}" for name, size in self.dims.items())

    @property
    def name(self) -> str:
        return f"{self.op} {self.shape} {self.dtype}"

    def work(self) -> Work:
        return op_work(self.op, self.dtype, self.dims)


@dataclass(frozen=True)
class ForwardCase:
    """Logits at all positions. `axis`: the size that a scaling case varies. `folded`: norms are part of the products;
    None leaves the choice to the model. `compiled`: torch.compile, which takes minutes, is among its peers."""

    model: str
    batch: int
    length: int
    dtype: str = DTYPE
    group: Group = "forward"
    axis: str = ""
    folded: bool | None = None
    compiled: bool = True

    @property
    def config(self) -> GPTConfig:
        return MODELS[self.model]

    @property
    def dims(self) -> Mapping[str, int]:
        return {"B": self.batch, "T": self.length}

    @property
    def shape(self) -> str:
        norms = {None: "", True: " folded", False: " unfolded"}[self.folded]
        return f"{self.model} B={self.batch} T={self.length}{norms}"

    @property
    def name(self) -> str:
        return f"{self.group}{f' over {self.axis}' if self.axis else ''} {self.shape} {self.dtype}"

    def work(self) -> Work:
        return forward_work(self.config, self.batch, self.length, self.dtype)


@dataclass(frozen=True)
class DecodeCase:
    """One token per sequence. It attends to a full cache of `positions`, of which its own is the last. `compiled`: as
    of a ForwardCase."""

    model: str
    batch: int
    positions: int
    dtype: str = DTYPE
    group: Group = "decode"
    compiled: bool = True

    @property
    def config(self) -> GPTConfig:
        return MODELS[self.model]

    @property
    def dims(self) -> Mapping[str, int]:
        return {"B": self.batch, "P": self.positions}

    @property
    def shape(self) -> str:
        return f"{self.model} B={self.batch} P={self.positions}"

    @property
    def name(self) -> str:
        return f"{self.group} {self.shape} {self.dtype}"

    def work(self) -> Work:
        return decode_work(self.config, self.batch, self.positions, self.dtype)


Case = OpCase | ForwardCase | DecodeCase


def _op(op: str, dtype: str = DTYPE, **dims: int) -> OpCase:
    return OpCase(op, dims, dtype)


FORWARD = tuple(
    ForwardCase("gpt2", batch, length)
    for batch, length in ((1, 64), (1, 1024), (8, 256), (16, 256), (8, 1024), (32, 1024))
)
DECODE = tuple(DecodeCase("gpt2", batch, 1024) for batch in (1, 8, 64))
# The rows of a forward at B=8 T=1024; GPT-2's (K, N) for the projections to q, k, v, back, up and down.
LAYERS: Mapping[str, Sequence[tuple[int, int]]] = {
    "linear": ((768, 2304), (768, 3072), (3072, 768), (768, 768)),
    "linear_gelu": ((768, 2304), (768, 3072), (3072, 768), (768, 768)),
    "linear_residual": ((768, 2304), (768, 3072), (3072, 768), (768, 768)),
}
# The model's products at the rows of its shorter forwards. With these few tiles, a partly filled last round matters.
IN_MODEL = (
    ("linear", 768, 2304),
    ("linear_gelu", 768, 3072),
    ("linear_residual", 768, 768),
    ("linear_residual", 3072, 768),
)
OPS = (
    *(_op(op, M=8192, K=k, N=n) for op, sizes in LAYERS.items() for k, n in sizes),
    *(_op(op, M=m, K=k, N=n) for m in (1024, 2048, 4096) for op, k, n in IN_MODEL),
    _op("linear", M=8192, K=8192, N=8192),
    _op("logits", M=8192, C=768, V=50257),
    *(_op("attention", B=b, T=t, S=t, H=12, D=64) for b, t in ((8, 1024), (4, 4096), (1, 1024))),
    *(_op("decode_attention", B=b, P=1024, H=12, D=64) for b in (8, 64)),
    _op("layernorm", N=8192, C=768),
    _op("embedding", N=8192, V=50257, P=1024, C=768),
    _op("softmax", M=4096, N=50257),
    _op("softmax", M=8192, N=1024),
    _op("gelu", M=8192, N=3072),
    _op("gelu", "f32", M=32 * 512, N=768),
    # At the rows of a forward at B=32 T=1024 the cost of starting a kernel is negligible; bandwidth is the limit.
    _op("layernorm", N=32768, C=768),
    _op("embedding", N=32768, V=50257, P=1024, C=768),
    _op("softmax", M=32768, N=1024),
    _op("gelu", M=32768, N=3072),
)
SCALING = (
    *(ForwardCase("gpt2-8k", 1, 2**n, group="scaling", axis="T", compiled=False) for n in range(6, 14)),
    *(ForwardCase("gpt2", 2**n, 64, group="scaling", axis="B", compiled=False) for n in range(9)),
    *(
        ForwardCase(name, 1, 1024, group="scaling", axis="size", compiled=False)
        for name in ("gpt2", "medium", "large", "xl")
    ),
)
# The larger GPT-2s at more rows than they are tuned for, their products, and round sizes.
LARGER = (
    *(
        ForwardCase(name, batch, length, group="larger", folded=folded)
        for name in ("medium", "large", "xl")
        for batch, length in ((1, 1024), (8, 256), (8, 1024))
        for folded in (None, False)
    ),
    *(
        DecodeCase(name, batch, 1024, group="larger", compiled=False)
        for name in ("medium", "large", "xl")
        for batch in (1, 8, 64)
    ),
    *(
        OpCase(op, {"M": m, "K": k * c, "N": n * c}, group="larger")
        for m in (2048, 8192)
        for c in (1024, 1280, 1600)
        for op, k, n in (("linear", 1, 3), ("linear_gelu", 1, 4), ("linear_residual", 1, 1), ("linear_residual", 4, 1))
    ),
    *(
        OpCase("linear", {"M": m, "K": k, "N": n}, group="larger")
        for m, k, n in ((4096, 4096, 4096), (2048, 4096, 4096), (1024, 8192, 8192), (8192, 8192, 2048))
    ),
)
# Products of 8-bit floats, at the sizes of those in 16 bits above.
F8 = (
    *(_op("linear_f8", M=8192, K=k, N=n) for k, n in LAYERS["linear"]),
    _op("linear_gelu_f8", M=8192, K=768, N=3072),
    *(_op("linear_residual_f8", M=8192, K=k, N=768) for k in (768, 3072)),
    _op("linear_f8", M=8192, K=8192, N=8192),
)
# SmolLM2-135M, whose weights are random here. Compiling its 30 layers takes minutes, so one size of each is compiled.
LLAMA = (
    *(
        ForwardCase("smollm2", batch, length, group="llama", compiled=(batch, length) == (1, 1024))
        for batch, length in ((1, 64), (1, 1024), (8, 256), (8, 1024), (1, 8192))
    ),
    *(
        DecodeCase("smollm2", batch, positions, group="llama", compiled=(batch, positions) == (1, 1024))
        for positions in (1024, 8000)
        for batch in (1, 8, 64)
    ),
)
CASES: Sequence[Case] = (*FORWARD, *DECODE, *OPS, *F8, *SCALING, *LARGER, *LLAMA)
