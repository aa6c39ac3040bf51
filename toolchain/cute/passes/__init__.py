"""Passes over `cute` IR, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.dialects.builtin import ModuleOp

from .fold_static import fold_static

PASSES: Mapping[str, Callable[[ModuleOp], None]] = {"cute-fold-static": fold_static}
