"""Whether texts of a batch are what each is alone: each of their tokens must be the likeliest, or as likely to the
rounding, behind the tokens before it, in a forward pass of the text alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpt.model import GPT
from toolchain.errors import ConformanceError

# Of the largest logit: bf16 keeps 8 bits, and the two ways add up in other orders, through all layers.
SHARE = 0.04


def check_alone(model: GPT, prompt: Sequence[int], new: Sequence[int]) -> tuple[int, float]:
    """How many tokens are exactly the likeliest, and the largest gap of the others, as a share of the largest logit.
    Raises ConformanceError for one above SHARE."""
    tokens = np.array([[*prompt, *new[:-1]]], np.int32)
    logits = model.forward(tokens).numpy()[0, len(prompt) - 1 :].astype(np.float32)  # (new, V)
    chosen = logits[np.arange(len(new)), list(new)]
    gaps = (logits.max(axis=1) - chosen) / np.abs(logits).max(axis=1)
    if not gaps.max() <= SHARE:
        at = int(gaps.argmax())
        raise ConformanceError(
            f"token {at} of a text in a batch, {new[at]}, is not what the text alone continues with: its logit lies "
            f"{gaps[at]:.1%} of the largest below it, and {SHARE:.0%} is the most"
        )
    return int((gaps == 0).sum()), float(gaps.max())
