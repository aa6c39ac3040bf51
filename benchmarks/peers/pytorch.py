"""PyTorch without its types, because only machines that measure have it, and type checking must work without it."""

from __future__ import annotations

from typing import Any

import torch as _torch  # pyright: ignore[reportMissingImports]
from torch._inductor import config as _inductor  # pyright: ignore[reportMissingImports]
from torch.nn import attention as _attention  # pyright: ignore[reportMissingImports]
from torch.nn import functional as _functional  # pyright: ignore[reportMissingImports]

Tensor = Any  # torch.Tensor
torch: Any = _torch
nn: Any = _torch.nn
functional: Any = _functional
attention: Any = _attention
inductor: Any = _inductor  # the settings of torch.compile's back end
