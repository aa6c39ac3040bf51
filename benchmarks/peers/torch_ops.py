"""Every op in plain PyTorch. In float64 it is the reference; in the op's dtype, its error sets a kernel's bound.

Arguments have the names of `ops.toml`; a large result is computed in pieces of its first dimension.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from conformance.reference.float64 import LARGEST
from toolchain.contract.op import ops
from toolchain.errors import UsageError

from ..cases.cases import OpCase
from ..cases.check import Errors, total
from .pytorch import Tensor, functional, torch
from .torch_gpt import padded
from .torch_side import PIECE, TorchSide

Args = Mapping[str, Any]


def embedding(tokens: Tensor, positions: Tensor, wte: Tensor, wpe: Tensor) -> Tensor:
    return wte[tokens] + wpe[positions]


def layernorm(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    return functional.layer_norm(x, (x.shape[-1],), weight, bias, eps)


def linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return x @ weight + bias


def linear_gelu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return gelu(linear(x, weight, bias))


def linear_residual(x: Tensor, weight: Tensor, bias: Tensor, residual: Tensor) -> Tensor:
    return residual + linear(x, weight, bias)


def linear_f8(x: Tensor, x_scales: Tensor, weight: Tensor, weight_scales: Tensor, bias: Tensor) -> Tensor:
    """The result has the bias's dtype. Its operands are widened: PyTorch has no product of 8-bit floats in float64."""
    wide = torch.float64 if bias.dtype == torch.float64 else torch.float32
    product = x.to(wide) @ weight.to(wide).t()
    return (product * x_scales[:, None] * weight_scales + bias).to(bias.dtype)


def linear_gelu_f8(x: Tensor, x_scales: Tensor, weight: Tensor, weight_scales: Tensor, bias: Tensor) -> Tensor:
    return gelu(linear_f8(x, x_scales, weight, weight_scales, bias))


def linear_gelu_f8_to_f8(
    x: Tensor, x_scales: Tensor, weight: Tensor, weight_scales: Tensor, bias: Tensor, factors: Tensor
) -> Tensor:
    """In 8 bits only where nothing else is: a reference in float64 is not rounded."""
    made = (linear_gelu_f8(x, x_scales, weight, weight_scales, bias) * factors).clamp(-LARGEST, LARGEST)
    return made if bias.dtype == torch.float64 else made.to(torch.float8_e4m3fn)


def linear_residual_f8(
    x: Tensor, x_scales: Tensor, weight: Tensor, weight_scales: Tensor, bias: Tensor, residual: Tensor
) -> Tensor:
    return residual + linear_f8(x, x_scales, weight, weight_scales, bias)


def logits(x: Tensor, weight: Tensor) -> Tensor:
    return x @ weight.t()


def gelu(x: Tensor) -> Tensor:
    return functional.gelu(x, approximate="tanh")


def softmax(x: Tensor) -> Tensor:
    return torch.softmax(x, dim=-1)


def attention(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    """All (B, T or S, H, D); query t of T sees keys 0 .. S - T + t."""
    heads = [x.transpose(1, 2) for x in (q, k, v)]
    t, s = q.shape[1], k.shape[1]
    places = torch.arange(s, device=q.device)
    visible = places <= places[:t, None] + (s - t)  # (T, S)
    scores = (heads[0] @ heads[1].transpose(2, 3)) * scale
    weights = torch.softmax(scores.masked_fill(~visible, -math.inf), dim=-1)
    return (weights @ heads[2]).transpose(1, 2)


def decode_attention(q: Tensor, k_cache: Tensor, v_cache: Tensor, lengths: Tensor, scale: float) -> Tensor:
    """q (B, H, D), caches (B, P, H, D)."""
    keys, values = k_cache.transpose(1, 2), v_cache.transpose(1, 2)  # (B, H, P, D)
    scores = (q[:, :, None] @ keys.transpose(2, 3)) * scale  # (B, H, 1, P)
    seen = torch.arange(k_cache.shape[1], device=q.device) < lengths[:, None, None, None]
    return (torch.softmax(scores.masked_fill(~seen, -math.inf), dim=-1) @ values)[:, :, 0]


_OPS: Mapping[str, Callable[..., Tensor]] = {
    f.__name__: f
    for f in (
        embedding, layernorm, linear, linear_gelu, linear_residual, logits, gelu, softmax, attention, decode_attention,
        linear_f8, linear_gelu_f8, linear_gelu_f8_to_f8, linear_residual_f8,
    )
}  # fmt: skip


def compute(op: str, args: Args) -> Tensor:
    """The op's output in the dtype of its arguments. Arguments that do not affect the result, such as work memory, are
    ignored."""
    if op not in _OPS:
        raise UsageError(f"there is no reference for {op} in PyTorch", hint="add it to benchmarks/peers/torch_ops.py")
    function = _OPS[op]
    return function(**{name: args[name] for name in inspect.signature(function).parameters})


def make_inputs(side: TorchSide, case: OpCase) -> dict[str, Any]:
    """The inputs and scalars of one launch, with the sizes of `case`. Each call draws new random numbers."""
    if case.op == "decode_attention":
        return _decode_inputs(side, case)
    made: dict[str, Any] = {}
    for param in ops()[case.op].params:
        if param.role == "output":
            continue
        if unknown := [name for name in param.dims if name not in case.dims]:
            raise UsageError(f"{case.name}: {param.name} has sizes {', '.join(unknown)}, which the case does not name")
        shape = [case.dims[name] for name in param.dims]
        if not param.dims:
            made[param.name] = _scalar(case, param.name)
        elif param.storage(case.dtype) == "i32":
            made[param.name] = _indices(side, case, param.name, shape)
        elif param.storage(case.dtype) == "f8E4M3FN":  # rows of normal numbers, as large as the type holds
            values = side.normal(shape, "f32")
            scales = values.abs().amax(dim=1, keepdim=True) / 448
            made[param.name] = (values / scales).to(torch.float8_e4m3fn)
            made[f"{param.name}_scales"] = scales[:, 0] * _spread(case, param.name)
        elif param.name in made:  # the scales of the array before
            continue
        else:
            made[param.name] = side.normal(shape, case.dtype) * _spread(case, param.name)
    if case.op == "logits":  # a view of one with rows of zeros at its end, which whoever wants it takes instead
        rows = padded(case.dims["V"]) - case.dims["V"]
        made["padded_weight"] = functional.pad(made["weight"], (0, 0, 0, rows))
        made["weight"] = made["padded_weight"][: case.dims["V"]]
    if case.op == "attention" and case.dims["T"] == case.dims["S"]:  # as the model has them: one array (B, T, 3, H, D)
        qkv = torch.stack([made[name] for name in "qkv"], dim=2)
        made |= dict(zip("qkv", qkv.unbind(2), strict=True))
    return made


def _decode_inputs(side: TorchSide, case: OpCase) -> dict[str, Any]:
    """A token at the last position of a full cache, which already holds its key and value. So an op that writes them
    again gives the same result as one that only reads."""
    b, p, h, d = (case.dims[name] for name in "BPHD")
    caches = {name: side.normal((b, p, h, d), case.dtype) for name in ("k_cache", "v_cache")}
    new = {"k": caches["k_cache"][:, -1].contiguous(), "v": caches["v_cache"][:, -1].contiguous()}
    count = torch.full((b,), p, device=side.device, dtype=torch.int32)
    indices = {"lengths": count, "positions": count - 1}
    return {"q": side.normal((b, h, d), case.dtype), **new, **caches, **indices, "scale": d**-0.5}


def _spread(case: OpCase, name: str) -> float:
    """The factor for a standard normal input. It makes products of about 1, and gives nonlinear ops values in their
    tails."""
    if name == "weight" and case.op.startswith(("linear", "logits")):
        return case.dims["K" if "K" in case.dims else "C"] ** -0.5
    return 3.0 if case.op in ("gelu", "softmax") else 1.0


def _scalar(case: OpCase, name: str) -> float:
    match name:
        case "eps":
            return 1e-5
        case "scale":
            return case.dims["D"] ** -0.5
        case _:
            raise UsageError(f"{case.name}: no value for its scalar {name}")


def _indices(side: TorchSide, case: OpCase, name: str, shape: list[int]) -> Tensor:
    match name:
        case "tokens":
            return side.integers(case.dims["V"], shape)
        case "positions":
            return torch.arange(shape[0], device=side.device, dtype=torch.int32) % case.dims["P"]
        case _:
            raise UsageError(f"{case.name}: no values for its indices {name}")


@dataclass(frozen=True)
class Expected:
    """The float64 result of one set of inputs, and the errors of the same computation in the op's dtype."""

    exact: Tensor
    eager: Errors


def expected(side: TorchSide, case: OpCase, inputs: Args) -> Expected:
    """Compute in pieces of the output's first dimension, so that the float64 memory of a piece stays small."""
    rows, step, sliced = _pieces(case)
    exact: list[Tensor] = []
    errors: list[Errors] = []
    for start in range(0, rows, step):
        piece = {n: v[start : start + step] if n in sliced else v for n, v in inputs.items()}
        exact.append(compute(case.op, {n: _double(v) for n, v in piece.items()}))
        errors.append(side.errors(compute(case.op, piece), exact[-1]))
    return Expected(torch.cat(exact), total(errors))


def _pieces(case: OpCase) -> tuple[int, int, set[str]]:
    """Rows of the output, rows of a piece, and the inputs that have a row for each of them."""
    if case.op == "decode_attention":
        return 1, 1, set()
    (output,) = ops()[case.op].outputs
    leading = output.dims[0]
    sliced = {p.name for p in ops()[case.op].params if p.dims[:1] == (leading,) and p.role == "input"}
    per_row = math.prod(case.dims[name] for name in output.dims[1:])
    if case.op == "attention":
        per_row *= case.dims["S"]  # the scores
    return case.dims[leading], max(1, PIECE // per_row), sliced


def _double(value: Any) -> Any:
    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value
