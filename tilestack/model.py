"""`generate`: write text with a GPT, token by token."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolchain.bundle import Bundle
from toolchain.entry import DTYPES
from toolchain.errors import UsageError

from .options import SOURCES, command, seed
from .progress import progress_bar

if TYPE_CHECKING:
    from gpt.config import GPTConfig
    from gpt.weights import Weights
    from toolchain.runtime import Executor

EXAMPLES = """\
  tilestack generate "Once"                            with the checkpoint of this repository
  tilestack generate "In the beginning" --temperature 0 --max-new-tokens 60
  tilestack generate "Hello" --checkpoint ~/gpt2 --executor cuda --dtype bf16
"""


def add(commands: Any) -> None:
    made = command(commands, "generate", generate, "continue a text with a GPT", EXAMPLES)
    made.add_argument("prompt", nargs="?", default="Once", help='the text to continue (default "Once")')
    made.add_argument(
        "--checkpoint", help="folder or hub name of a GPT-2 (default: the one that comes with this repository)"
    )
    made.add_argument("--bundle", type=Path, help="a compiled bundle (default build/bundle, or made for this run)")
    made.add_argument("--source", choices=list(SOURCES), default="mlir", help="whose kernels (default mlir)")
    made.add_argument("--executor", default="auto", help="auto, cpu, cuda or cuda:N (default auto)")
    made.add_argument("--dtype", choices=DTYPES, default="bf16", help="default bf16")
    made.add_argument("--max-new-tokens", type=int, default=200, metavar="N", help="default 200")
    made.add_argument("--temperature", type=float, default=0.7, help="0 takes the likeliest (default 0.7)")
    made.add_argument("--top-k", type=int, metavar="K", help="only the K likeliest")
    made.add_argument("--top-p", type=float, metavar="P", help="only the likeliest that together reach P")
    made.add_argument("--seed", type=seed, default=0, help="of the sampling (default 0)")
    made.add_argument("--stop", action="append", default=[], metavar="TEXT", help="stop before this one token; repeat")


def generate(args: argparse.Namespace) -> int:
    from gpt import weights
    from gpt.generate import check
    from gpt.generate import generate as continuation
    from gpt.model import GPT
    from gpt.tokenizer import load_tokenizer
    from toolchain.runtime import Launcher, open_executor

    config, tensors, folder = weights.load(weights.SHIPPED if args.checkpoint is None else args.checkpoint)
    tokenizer = load_tokenizer(folder, config)
    stop = [tokenizer.end_of_text, *(_one_token(tokenizer, text) for text in args.stop)]
    prompt = tokenizer.encode(args.prompt)
    how = {name: getattr(args, name) for name in ("max_new_tokens", "temperature", "top_k", "top_p", "seed")}
    check(config, prompt, **how)
    with open_executor(args.executor) as executor, _bundle(args, executor, config, tensors, len(prompt)) as bundle:
        model = GPT(config, tensors, Launcher(bundle, args.source, executor), args.dtype)
        tokens = continuation(model, prompt, **how, stop=stop)
        started, count = time.perf_counter(), 0

        def counted() -> Iterator[int]:
            nonlocal count
            for token in tokens:
                count += 1
                yield token

        print(args.prompt, end="", flush=True)
        try:
            for piece in tokenizer.stream(counted()):
                print(piece, end="", flush=True)
        finally:
            print(flush=True)  # an error begins a line of its own
        seconds = time.perf_counter() - started
        rate = f"{count / seconds:.1f} tokens/s" if count else "no tokens"
        print(f"{executor.name}, source {args.source}, {args.dtype}: {rate}", file=sys.stderr)
    return 0


def _one_token(tokenizer: Any, text: str) -> int:
    tokens = tokenizer.encode(text)
    if len(tokens) != 1:
        raise UsageError(f"--stop {text!r} is {len(tokens)} tokens of this tokenizer, not one")
    return tokens[0]


@contextmanager
def _bundle(
    args: argparse.Namespace, executor: Executor, config: GPTConfig, tensors: Weights, prompt: int
) -> Generator[Bundle]:
    """The bundle named, or build/bundle; where neither is there, one of just the entries that this text takes."""
    path = args.bundle or Path("build/bundle")
    if args.bundle or path.exists():
        yield Bundle.load(path)
        return
    from toolchain import bundle, knobs, pipeline, targets
    from toolchain.cache import Cache

    from .selection import entries_of_a_text

    package, target = SOURCES[args.source], executor.target
    if target is not None and target not in targets.targets():
        raise UsageError(
            f"there is no compiled bundle, and {target} is not a target that can be compiled for",
            hint="name one with --bundle",
        )
    specs = entries_of_a_text(
        package, target, executor.sms, config, tensors, args.dtype, prompt=prompt, count=args.max_new_tokens
    )
    wanted = [targets.targets()[target]] if target else []
    with progress_bar() as progress:
        outcome = pipeline.compile_entries(
            [(package, spec) for spec in specs], wanted, Cache(knobs.cache_dir()), jobs=knobs.jobs(), progress=progress
        )
    for failure in outcome.failures:
        raise failure.error
    with tempfile.TemporaryDirectory(prefix="tilestack-") as folder:
        yield bundle.write(Path(folder) / "bundle", outcome.compiled, pipeline.tools_used(wanted))
