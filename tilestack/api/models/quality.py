"""How much worse one model predicts a text than another: perplexities, computed by the kernels themselves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gpt.reference.perplexity import losses

from .gpt import GPT


def losses_of(checkpoint: Path, tokens: NDArray[np.int32]) -> NDArray[np.float64]:
    """`losses` of a checkpoint in bf16, on this machine's GPU or the interpreter."""
    with GPT.from_pretrained(checkpoint) as model:
        return losses(model, tokens)
