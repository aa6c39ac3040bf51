"""The ways in which PyTorch and CuPy compute each op; several if it is not obvious which one is the fastest."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.reference.float64 import LARGEST

from ..cases.cases import OpCase
from ..cases.options import Kind
from .pytorch import Tensor, functional, torch
from .torch_gpt import padded
from .torch_side import MAX_AUTOTUNE

Args = Mapping[str, Any]


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class OpPeer:
    """One way to compute an op.

    `arrange`: copies a set of inputs to the layout that suits it best, before it is timed.
    `call`: the timed part.
    `result`: brings the value that `call` returns into the op's layout, after timing.
    `attention`: the SDPA backend to capture it with.
    """

    name: str
    kind: Kind
    call: Callable[[Args], Tensor]
    arrange: Callable[[Args], Args] = _same
    result: Callable[[Tensor], Tensor] = _same
    attention: str = "any"


def op_peers(case: OpCase) -> Sequence[OpPeer]:
    """All peers of a case's op; empty for an op that PyTorch does not have."""
    make = _PEERS.get(case.op)
    return make(case) if make else ()


def _graph(name: str, call: Callable[[Args], Tensor], **also: Any) -> OpPeer:
    return OpPeer(name, "graph", call, **also)


def _compile(call: Callable[[Args], Tensor], **also: Any) -> OpPeer:
    return OpPeer(f"torch.compile {MAX_AUTOTUNE}", "compile", call, **also)


# Products. GPT-2's weights are (K, N); PyTorch's own layers have them (N, K).


def _nk(args: Args) -> Args:
    return {**args, "weight": args["weight"].t().contiguous()}


def _f_linear(a: Args) -> Tensor:
    return functional.linear(a["x"], a["weight"], a["bias"])


def _linear(_: OpCase) -> Sequence[OpPeer]:
    return (
        _graph("F.linear", _f_linear, arrange=_nk),
        _graph("addmm", lambda a: torch.addmm(a["bias"], a["x"], a["weight"])),
        _compile(_f_linear, arrange=_nk),
    )


def _gelu_of_linear(a: Args) -> Tensor:
    return functional.gelu(_f_linear(a), approximate="tanh")


def _linear_gelu(_: OpCase) -> Sequence[OpPeer]:
    def fused(a: Args, weight: Tensor) -> Tensor:
        return torch._addmm_activation(a["bias"], a["x"], weight, use_gelu=True)  # noqa: SLF001 - the one way to it

    return (
        _graph("F.linear, F.gelu", _gelu_of_linear, arrange=_nk),
        _graph("cublasLt bias+gelu", lambda a: fused(a, a["weight"])),
        _graph("cublasLt bias+gelu, (N, K)", lambda a: fused(a, a["weight"].t()), arrange=_nk),
        _compile(_gelu_of_linear, arrange=_nk),
    )


def _linear_plus(a: Args) -> Tensor:
    return a["residual"] + _f_linear(a)


def _linear_residual(_: OpCase) -> Sequence[OpPeer]:
    return (
        _graph("residual + F.linear", _linear_plus, arrange=_nk),
        _graph("addmm(residual) + bias", lambda a: torch.addmm(a["residual"], a["x"], a["weight"]).add_(a["bias"])),
        _compile(_linear_plus, arrange=_nk),
    )


# Products of 8-bit floats. PyTorch's takes scales by rows and columns, and a bias in 16 bits.


def _scaled_product(a: Args) -> Tensor:
    return torch._scaled_mm(  # noqa: SLF001 - the one way to it
        a["x"], a["weight"].t(), a["x_scales"][:, None], a["weight_scales"][None], bias=a["bias"],
        out_dtype=torch.bfloat16, use_fast_accum=True,
    )  # fmt: skip


def _linear_f8(_: OpCase) -> Sequence[OpPeer]:
    return (_graph("_scaled_mm", _scaled_product),)


def _linear_gelu_f8(_: OpCase) -> Sequence[OpPeer]:
    def call(a: Args) -> Tensor:
        return functional.gelu(_scaled_product(a), approximate="tanh")

    return (_graph("_scaled_mm, F.gelu", call), _compile(call))


def _linear_gelu_f8_to_f8(_: OpCase) -> Sequence[OpPeer]:
    def call(a: Args) -> Tensor:
        made = functional.gelu(_scaled_product(a), approximate="tanh") * a["factors"]
        return made.clamp(-LARGEST, LARGEST).to(torch.float8_e4m3fn)

    return (_graph("_scaled_mm, F.gelu, to", call), _compile(call))


def _linear_residual_f8(_: OpCase) -> Sequence[OpPeer]:
    def call(a: Args) -> Tensor:
        return a["residual"] + _scaled_product(a)

    return (_graph("residual + _scaled_mm", call), _compile(call))


def _logits(case: OpCase) -> Sequence[OpPeer]:
    vocab = case.dims["V"]

    def pad(a: Args) -> Args:
        return {**a, "weight": a["padded_weight"]}

    def product(a: Args) -> Tensor:
        return functional.linear(a["x"], a["weight"])

    def cut(result: Tensor) -> Tensor:
        return result[:, :vocab]

    return (
        _graph(f"F.linear, V={padded(vocab)}", product, arrange=pad, result=cut),
        _graph("F.linear", product),
        _compile(product, arrange=pad, result=cut),
    )


# Attention. PyTorch's operands are (B, H, T, D): a view of the model's arrays, or a contiguous copy.


def _heads(a: Args) -> Args:
    return {name: a[name].transpose(1, 2) for name in "qkv"} | {"scale": a["scale"]}


def _dense(args: Args) -> Args:
    return {name: value.contiguous() if hasattr(value, "contiguous") else value for name, value in args.items()}


def _back(result: Tensor) -> Tensor:
    return result.transpose(1, 2)


def _attention(_: OpCase) -> Sequence[OpPeer]:
    def causal(a: Args) -> Tensor:
        return functional.scaled_dot_product_attention(a["q"], a["k"], a["v"], is_causal=True, scale=a["scale"])

    def dense(a: Args) -> Args:
        return _dense(_heads(a))

    return tuple(
        _graph(f"SDPA {backend}{how}", causal, arrange=arrange, result=_back, attention=backend)
        for backend in ("flash", "cudnn")
        for how, arrange in (("", _heads), (", dense (B, H, T, D)", dense))
    )


def _decode_attention(_: OpCase) -> Sequence[OpPeer]:
    """Attention without lengths, because every sequence fills its cache; a mask would cost PyTorch more. Unlike ours,
    it does not write the token's key and value to the cache."""

    def views(a: Args) -> Args:
        cache = {"k": a["k_cache"].transpose(1, 2), "v": a["v_cache"].transpose(1, 2)}  # (B, H, P, D)
        return {"q": a["q"][:, :, None], "scale": a["scale"], **cache}

    def attend(a: Args) -> Tensor:
        return functional.scaled_dot_product_attention(a["q"], a["k"], a["v"], scale=a["scale"])

    def dense(a: Args) -> Args:
        return _dense(views(a))

    def cut(result: Tensor) -> Tensor:
        return result[:, :, 0]

    return tuple(
        _graph(f"SDPA {backend}{how}", attend, arrange=arrange, result=cut, attention=backend)
        for backend in ("flash", "cudnn", "efficient")
        for how, arrange in (("", views), (", dense (B, H, P, D)", dense))
    )


# The others


def _layernorm(_: OpCase) -> Sequence[OpPeer]:
    def norm(a: Args) -> Tensor:
        return functional.layer_norm(a["x"], (a["x"].shape[-1],), a["weight"], a["bias"], a["eps"])

    return _graph("F.layer_norm", norm), _compile(norm)


def _embedding(_: OpCase) -> Sequence[OpPeer]:
    def embed(a: Args) -> Tensor:
        return functional.embedding(a["tokens"], a["wte"]) + functional.embedding(a["positions"], a["wpe"])

    return _graph("F.embedding + F.embedding", embed), _compile(embed)


def _softmax(_: OpCase) -> Sequence[OpPeer]:
    def softmax(a: Args) -> Tensor:
        return torch.softmax(a["x"], dim=-1)

    return _graph("softmax", softmax), _compile(softmax)


def _gelu(case: OpCase) -> Sequence[OpPeer]:
    def gelu(a: Args) -> Tensor:
        return functional.gelu(a["x"], approximate="tanh")

    peers = (_graph("F.gelu", gelu), _compile(gelu))
    return (*peers, *_cupy_gelu()) if case.dtype == "f32" else peers


def _cupy_gelu() -> Sequence[OpPeer]:
    """GELU in CuPy: as an expression, with one kernel per operation, and fused into one kernel. CuPy lacks bfloat16."""

    @functools.cache
    def library() -> Any:
        import cupy  # only where this peer runs  # pyright: ignore[reportMissingImports]

        cupy.cuda.Stream.from_external(torch.cuda.current_stream()).use()
        return cupy

    def expression(x: Any) -> Any:
        return 0.5 * x * (1 + library().tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))

    @functools.cache
    def fused() -> Any:
        return library().fuse()(expression)

    def arrange(a: Args) -> Args:
        return {"x": library().from_dlpack(a["x"])}

    def run_expression(a: Args) -> Any:
        return expression(a["x"])

    def run_fused(a: Args) -> Any:
        return fused()(a["x"])

    peers: Mapping[str, Callable[[Args], Any]] = {"CuPy expression": run_expression, "CuPy fused": run_fused}
    return [OpPeer(n, "eager", call, arrange=arrange, result=torch.from_dlpack) for n, call in peers.items()]


_PEERS: Mapping[str, Callable[[OpCase], Sequence[OpPeer]]] = {
    "linear": _linear, "linear_gelu": _linear_gelu, "linear_residual": _linear_residual, "logits": _logits,
    "attention": _attention, "decode_attention": _decode_attention, "layernorm": _layernorm, "embedding": _embedding,
    "softmax": _softmax, "gelu": _gelu, "linear_f8": _linear_f8, "linear_gelu_f8": _linear_gelu_f8,
    "linear_gelu_f8_to_f8": _linear_gelu_f8_to_f8, "linear_residual_f8": _linear_residual_f8,
}  # fmt: skip
