"""Passes over `cute` IR, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.dialects.builtin import ModuleOp

from .fold_static import fold_static
from .to_base import to_base

PASSES: Mapping[str, Callable[[ModuleOp], None]] = {"cute-fold-static": fold_static, "cute-to-base": to_base}
