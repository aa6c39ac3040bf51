"""`quantize`: a checkpoint with its products in 8 bits."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import Any

from toolchain.errors import UsageError

from .common.options import command

EXAMPLES = """\
  tilestack quantize --output /tmp/small-f8               the checkpoint of this repository
  tilestack quantize ~/gpt2 --output ~/gpt2-f8
  tilestack generate "Once" --model ~/gpt2-f8             reads it; the weights take half the memory
"""
BESIDE = ("tokenizer.json", "tokenizer_config.json", "generation_config.json", "chat_template.jinja")


def add(commands: Any) -> None:
    made = command(commands, "quantize", quantize, "write a checkpoint with its products in 8 bits", EXAMPLES)
    made.add_argument(
        "model",
        nargs="?",
        metavar="MODEL",
        help="a folder, a GGUF file, or a hub name of a GPT-2 (default: the shipped)",
    )
    made.add_argument("--to", choices=["f8"], default="f8", help="8-bit floats, e4m3 (default)")
    made.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="the checkpoint's folder")


def quantize(args: argparse.Namespace) -> int:
    from gpt import weights
    from gpt.stored import CONFIG

    config, tensors, place = weights.load(weights.SHIPPED if args.model is None else args.model)
    if args.output.exists() and (not args.output.is_dir() or args.output.resolve() == place.resolve()):
        raise UsageError(f"{args.output} is not a folder to write to", hint="choose another --output")
    if args.output.is_dir() and any(args.output.iterdir()) and not (args.output / CONFIG).is_file():
        raise UsageError(f"{args.output} holds something else than a checkpoint", hint="choose another --output")
    made = weights.quantized(config, tensors, args.to)
    weights.save(args.output, config, made)
    for name in BESIDE:
        if (place / name).is_file():
            shutil.copyfile(place / name, args.output / name)
    before, after = (sum(tensor.nbytes for tensor in each.values()) for each in (tensors, made))
    print(f"{args.output}: {after / 1e6:.1f} MB of weights, {before / 1e6:.1f} MB before")
    return 0
