"""PyTorch without its types: only a machine that measures has it, and type checking must not need it."""

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
