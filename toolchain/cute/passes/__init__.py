"""Passes over `cute` IR, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.dialects.builtin import ModuleOp

from .canonicalize import canonicalize
from .desugar import desugar
from .expand_atoms import expand_atoms
from .expand_ops import expand_ops
from .fold_static import fold_static
from .layout_analysis import layout_analysis
from .lower import lower
from .nvgpu_to_nvvm import TARGET, nvgpu_to_nvvm
from .to_base import to_base
from .upstream import UPSTREAM

__all__ = ["PASSES", "PIPELINE", "TARGET"]


def to_standard(module: ModuleOp) -> None:
    """`cute-to-standard`: the passes from `cute` to the standard dialects (arith, scf, llvm), one after the other. The
    instructions of `cute_nvgpu` stay; `cute-nvgpu-to-nvvm` lowers them."""
    for one in (desugar, lower):
        one(module)


PASSES: Mapping[str, Callable[[ModuleOp], None]] = {
    "cute-canonicalize": canonicalize,
    "cute-fold-static": fold_static,
    "cute-layout-analysis": layout_analysis,
    "cute-desugar": desugar,
    "cute-expand-atoms": expand_atoms,
    "cute-expand-ops": expand_ops,
    "cute-lower": lower,
    "cute-to-base": to_base,
    "cute-to-standard": to_standard,
    "cute-nvgpu-to-nvvm": nvgpu_to_nvvm,
    **UPSTREAM,
}
PIPELINE = ("cute-desugar", "cute-lower", "cute-nvgpu-to-nvvm")  # to the base level
