"""Passes over `cute` IR, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.dialects.builtin import ModuleOp

from .expand_ops import expand_ops
from .fold_static import fold_static
from .nvgpu_to_nvvm import TARGET, nvgpu_to_nvvm
from .to_base import to_base

__all__ = ["PASSES", "PIPELINE", "TARGET"]

PASSES: Mapping[str, Callable[[ModuleOp], None]] = {
    "cute-fold-static": fold_static,
    "cute-expand-ops": expand_ops,
    "cute-to-base": to_base,
    "cute-nvgpu-to-nvvm": nvgpu_to_nvvm,
}
PIPELINE = ("cute-to-base", "cute-nvgpu-to-nvvm")  # to the base level
