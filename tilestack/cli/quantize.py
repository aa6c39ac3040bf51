"""`quantize`: a checkpoint with its products in 8 bits."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from toolchain.errors import UsageError
from toolchain.files import check_makable, filling

from .common.options import QUANTIZATIONS, command, read_text

EXAMPLES = """\
  tilestack quantize --output /tmp/small-f8               the checkpoint of this repository
  tilestack quantize ~/gpt2 --output ~/gpt2-f8
  tilestack quantize ~/gpt2 --to i8 --output ~/gpt2-i8
  tilestack quantize ~/gpt2 --to i8 --logits --output ~/gpt2-i8
                                                          logits of many rows in 8 bits too: faster
  tilestack quantize smollm2 --to i8-weights --output ~/smollm2-i8
  tilestack quantize ~/gpt2 --output ~/gpt2-f8 --compare book.txt
                                                          says how much worse it predicts this text
  tilestack generate "Once" --model ~/gpt2-f8             reads it; the weights take half the memory
"""


def add(commands: Any) -> None:
    made = command(commands, "quantize", quantize, "write a checkpoint with its products in 8 bits", EXAMPLES)
    made.add_argument(
        "model",
        nargs="?",
        metavar="MODEL",
        help="smollm2, a folder, a GGUF file, or a hub name (default: the shipped)",
    )
    made.add_argument(
        "--to", choices=QUANTIZATIONS, default="f8",
        help="8-bit floats, e4m3 (default), or integers; with -weights only the weights, as a llama needs",
    )  # fmt: skip
    made.add_argument("--logits", action="store_true", help="these in 8 bits too, of many rows: f8 and i8 alone")
    made.add_argument("--compare", type=Path, metavar="TEXT", help="says how much worse it predicts this file, in bf16")
    made.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="the checkpoint's folder")


def quantize(args: argparse.Namespace) -> int:
    from gpt.families.weights_8bits import DTYPE
    from gpt.files.stored import CONFIG
    from gpt.parameters import weights
    from gpt.reference import perplexity
    from gpt.tokens.beside import copy_texts
    from gpt.tokens.tokenizer import load_tokenizer

    from ..api.models import quality

    text = None if args.compare is None else read_text(args.compare)

    config, tensors, place = weights.load(weights.SHIPPED if args.model is None else args.model)
    if args.output.exists() and (not args.output.is_dir() or args.output.resolve() == place.resolve()):
        raise UsageError(f"{args.output} is not a folder to write to", hint="choose another --output")
    check_makable(args.output)
    if args.output.is_dir() and any(args.output.iterdir()) and not _quantized(args.output / CONFIG):
        raise UsageError(
            f"{args.output} holds something else than a quantized checkpoint", hint="choose another --output"
        )
    asked = None if text is None else perplexity.pieces(load_tokenizer(place, config).encode(text), config.n_ctx)
    config, made = weights.quantized(config, tensors, args.to, logits=args.logits)
    if config.family == "llama":
        made = made.astype(DTYPE)  # what the others are computed in
    with filling(args.output) as scratch:
        weights.save(scratch, config, made)
        copy_texts(place, scratch)
    before, after = (sum(tensor.nbytes for tensor in each.values()) for each in (tensors, made))
    print(f"{args.output}: {after / 1e6:.1f} MB of weights, {before / 1e6:.1f} MB before")
    if asked is not None:
        found = [quality.losses_of(folder, asked) for folder in (place, args.output)]
        print(f"{args.compare}: {perplexity.compared(found[1], found[0])}")
    return 0


def _quantized(config: Path) -> bool:
    """Whether a folder's config.json is of a quantized checkpoint, such as an earlier run of this command wrote."""
    from gpt.parameters.quantize import KEY

    try:
        row = json.loads(config.read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(row, dict) and KEY in row
