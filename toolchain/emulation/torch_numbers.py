"""Results as a GPU has them, where PyTorch's own for a CPU have other numbers.

Programs compare a kernel with PyTorch, with tolerances that hold on a GPU: its libraries multiply 16-bit floats with
sums of at least float32 in short chains, and float32 as TF32 where they may, and sum gradients in float32. A CPU's sum
float16 in long chains of float32, know no TF32, and sum gradients of normalizations in the type of the tensors. Some
functions are less exact there, or are missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch as _torch  # pyright: ignore[reportMissingImports] - type checking works without it
import torch.nn.attention  # pyright: ignore[reportMissingImports]

torch: Any = _torch
Tensor = Any  # torch.Tensor
Arguments = tuple[Any, ...]
_BACKENDS: Any = torch.nn.attention.SDPBackend


def _product(func: Callable[..., Any], args: Arguments, kwargs: dict[str, Any]) -> Tensor:
    left, right, *others = args
    result = kwargs.pop("out_dtype", left.dtype)  # the CPU's have none
    if left.dtype == torch.float16:
        wide = torch.float64
    elif left.dtype == torch.float32 and torch.backends.cuda.matmul.allow_tf32:
        return func(_as_tf32(left), _as_tf32(right), *others, **kwargs)
    else:
        wide = result
    return _in(wide, func, args, kwargs).to(result)


def _scaled_product(func: Callable[..., Any], args: Arguments, kwargs: dict[str, Any]) -> Tensor:
    """8-bit floats: both sides of a comparison sum in float32 in the same way on a GPU. Here the reference is exact."""
    if len(args) != 2 or not {"scale_a", "scale_b"} <= kwargs.keys() <= {"scale_a", "scale_b", "out_dtype"}:
        return func(*args, **kwargs)
    left, right = (each.to(torch.float64) for each in args)
    scaled = torch.matmul(left, right) * kwargs["scale_a"].to(torch.float64) * kwargs["scale_b"].to(torch.float64)
    return scaled.to(kwargs.get("out_dtype") or args[0].dtype)


def _in_float32(func: Callable[..., Any], args: Arguments, kwargs: dict[str, Any]) -> Tensor:
    dtype = args[0].dtype
    if dtype.itemsize > 2:
        return func(*args, **kwargs)
    return _in(torch.float32, func, args, kwargs).to(dtype)


def _square_root(func: Callable[..., Any], args: Arguments, kwargs: dict[str, Any]) -> Tensor:
    """A GPU's is the nearest float32; a CPU's vector library may give its neighbour."""
    if args[0].dtype != torch.float32:
        return func(*args, **kwargs)
    return _in(torch.float64, func, args, kwargs).to(torch.float32)


def _magnitude(func: Callable[..., Any], args: Arguments, kwargs: dict[str, Any]) -> Tensor:
    """Of truth values too, which a CPU's lacks."""
    return args[0].clone() if args[0].dtype == torch.bool else func(*args, **kwargs)


def _attention(func: Callable[..., Any], args: Arguments, kwargs: dict[str, Any]) -> Tensor:
    """Programs choose one of a GPU's implementations, which a CPU has not."""
    with torch.nn.attention.sdpa_kernel([_BACKENDS.FLASH_ATTENTION, _BACKENDS.MATH]):
        return _in_float32(func, args, kwargs)


def _in(dtype: Any, func: Callable[..., Any], args: Arguments, kwargs: Mapping[str, Any]) -> Tensor:
    """A function of these tensors, converted but for those of float64. Gradients are converted back by PyTorch."""

    def converted(value: Any) -> Any:
        narrow = isinstance(value, torch.Tensor) and value.is_floating_point() and value.dtype != torch.float64
        return value.to(dtype) if narrow else value

    return func(*map(converted, args), **{name: converted(value) for name, value in kwargs.items()})


def _as_tf32(tensor: Tensor) -> Tensor:
    """A factor with 10 bits behind the point, rounded to the nearest. Its gradient is the one without rounding."""
    with torch.no_grad():
        bits = tensor.contiguous().view(torch.int32)
        rounded = ((bits + 0x0FFF + ((bits >> 13) & 1)) & ~0x1FFF).view(torch.float32)
        error = torch.where(torch.isfinite(tensor), rounded - tensor, 0)
    return tensor + error


def positional(func: Callable[..., Any], args: Arguments, kwargs: dict[str, Any]) -> tuple[Arguments, dict[str, Any]]:
    """The same call with the tensors that decide by position, if they were given by name."""
    rest = dict(kwargs)
    for count, names in enumerate((("input", "self", "query"), ("other", "mat2", "weight"))):
        if len(args) == count and (count == 0 or func in _PRODUCTS):
            args = (*args, *(rest.pop(name) for name in names if name in rest))
    return args, rest


def differs(func: Callable[..., Any]) -> bool:
    """Whether a GPU's result of this function has other numbers or another dtype."""
    return func in RESULTS or (func in _WIDENED and torch.is_autocast_enabled("cuda"))


def computed(func: Callable[..., Any], args: Arguments, kwargs: dict[str, Any]) -> Tensor:
    """A GPU's result of such a function. Mixed precision converts its tensors first."""
    as_on_gpu = RESULTS.get(func, _in_float32)
    if not torch.is_autocast_enabled("cuda"):
        return as_on_gpu(func, args, kwargs)
    with torch.autocast("cpu", enabled=False):
        if as_on_gpu is _in_float32:
            return _in(torch.float32, func, args, kwargs)
        if as_on_gpu in (_product, _attention):
            return _in(torch.get_autocast_dtype("cuda"), lambda *a, **k: as_on_gpu(func, a, k), args, kwargs)
        return as_on_gpu(func, args, kwargs)


_T = torch.Tensor
_PRODUCTS = (
    torch.mm, torch.bmm, torch.matmul, _T.mm, _T.bmm, _T.matmul, _T.__matmul__, torch.nn.functional.linear,
)  # fmt: skip
_IN_FLOAT32 = (torch.nn.functional.layer_norm, torch.nn.functional.group_norm, torch.layer_norm, torch.group_norm)
RESULTS: dict[Any, Callable[[Callable[..., Any], Arguments, dict[str, Any]], Tensor]] = {
    **dict.fromkeys(_PRODUCTS, _product),
    torch._scaled_mm: _scaled_product,  # noqa: SLF001 - it has no other name
    **dict.fromkeys(_IN_FLOAT32, _in_float32),
    **dict.fromkeys((torch.sqrt, _T.sqrt), _square_root),
    **dict.fromkeys((torch.abs, torch.absolute, _T.abs, _T.absolute, _T.__abs__), _magnitude),
    torch.nn.functional.scaled_dot_product_attention: _attention,
}
_NAMES = """
acos asin cosh cosine_embedding_loss cdist cosine_similarity cross_entropy cumprod cumsum dist erfinv exp expm1
hinge_embedding_loss kl_div l1_loss log log10 log_softmax log1p log2 margin_ranking_loss mse_loss multilabel_margin_loss
multi_margin_loss nll_loss norm normalize pdist poisson_nll_loss pow prod reciprocal renorm rsqrt sinh smooth_l1_loss
soft_margin_loss softmax softmin softplus sum tan triplet_margin_loss __pow__ __rpow__
"""  # what mixed precision computes in float32 on a GPU: https://docs.pytorch.org/docs/stable/amp.html
_PLACES = (torch, _T, torch.nn.functional)
_WIDENED = {getattr(place, name) for name in _NAMES.split() for place in _PLACES if hasattr(place, name)}
