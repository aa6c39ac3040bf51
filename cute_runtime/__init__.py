"""Compiled kernels in Python and in C++: loading and launching cubins and PTX, without the bundle of a model.

The C++ library is header-only: `include_dirs()` has the folders that a compiler needs. docs/cute-runtime.md has a
program in each language.
"""

from __future__ import annotations

from .headers import include_dirs

__all__ = ["include_dirs"]
