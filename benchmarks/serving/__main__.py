"""`python -m benchmarks.serving`: a mixed load of requests on a model, at several rates: throughput, and how long
requests wait. Needs a bundle, and a GPU for times that mean something."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import Any

from conformance.cells import borrows_from
from gpt.batches.batching import PIECES, Batching
from gpt.batches.pages import pages_for
from gpt.config import LLAMAS, PRESETS
from gpt.model import GPT
from gpt.parameters import weights
from toolchain import command
from toolchain.bundles.bundle import Bundle
from toolchain.errors import UsageError
from toolchain.files import write_whole
from toolchain.runtime import Launcher, open_executor

from ..rows import by_rows
from .check import check_alone
from .load import mixed
from .measure import Served, serve
from .plot import picture

MODELS = {**PRESETS, **{f"llama-{name}": config for name, config in LLAMAS.items()}}
CHECKED = 8  # texts of the batch that are compared with each alone


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serving", description=__doc__)
    parser.add_argument("--bundle", type=Path, default=Path("build/bundle"), metavar="DIR")
    parser.add_argument("--model", choices=MODELS, default="llama-smollm2", help="its sizes; the weights are random")
    parser.add_argument("--source", default="mlir")
    parser.add_argument("--dtype", default="bf16")
    parser.add_argument("--executor", default="auto")
    parser.add_argument("--requests", type=int, default=256)
    parser.add_argument("--texts", type=int, default=256, help="that run at the same time (default 256)")
    parser.add_argument("--longest", type=int, default=4096, help="prompt, in tokens (default 4096)")
    parser.add_argument("--rates", type=_rates, default=[inf, 128, 64, 32, 16], metavar="R,R", help="inf: all at once")
    parser.add_argument("--stop-after", type=float, default=120.0, metavar="S", help="begin no rate after so long")
    parser.add_argument("--output", type=Path, default=Path("build/serving"), metavar="DIR")
    args = parser.parse_args(arguments)
    return command.run(lambda: measured(args), set_up="compile a bundle, or name one with --bundle")


def _rates(text: str) -> list[float]:
    try:
        rates = [float(word) for word in text.split(",")]
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of rates") from error
    if not all(rate > 0 for rate in rates):
        raise argparse.ArgumentTypeError(f"{text!r}: a rate is above 0")
    return rates


def measured(args: argparse.Namespace) -> int:
    config = MODELS[args.model]
    if args.requests < 1 or args.longest >= config.n_ctx:
        raise UsageError(f"{args.requests} requests of up to {args.longest} tokens for a context of {config.n_ctx}")
    began = time.perf_counter()
    with open_executor(args.executor, sanitize=False) as executor:
        launcher = Launcher(
            Bundle.load(args.bundle), args.source, executor, borrows_from=borrows_from(args.source)
        )  # fmt: skip
        model = GPT(config, weights.random_weights(config, seed=0).astype(args.dtype), launcher, args.dtype)
        batching = Batching(model, texts=args.texts, pages=args.texts * pages_for(args.longest) // 2)
        say(f"{executor.name}: {args.model}, random weights, {args.dtype}, {batching.schedule.pages.count} pages, "
            f"{batching.cache.memory.nbytes / 1e9:.2f} GB")  # fmt: skip
        batching.warm(args.texts, PIECES, pages_for(args.longest + 256))
        executor.synchronize()
        say(f"captured every shape in {time.perf_counter() - began:.1f} s, with the model's start")
        rows: list[dict[str, Any]] = []
        checked: list[tuple[int, int, float]] = []
        for rate in args.rates:
            if time.perf_counter() - began > args.stop_after:
                say(f"{rate:g} a second: not run, after {args.stop_after:g} s")
                continue
            load = mixed(args.requests, rate, config.vocab_size, longest=args.longest)
            served, tokens = serve(batching, load, rate)
            show(served)
            rows.append(served.row)
            if not checked:
                for index in range(0, len(load), max(1, len(load) // CHECKED)):
                    exact, gap = check_alone(model, load[index].tokens, tokens[index])
                    checked.append((len(tokens[index]), exact, gap))
                say("beside each text alone (tokens, exactly the likeliest, largest gap): "
                    + " ".join(f"{count}/{exact}/{gap:.4f}" for count, exact, gap in checked))  # fmt: skip
        found = {
            "gpu": executor.name, "target": executor.target, "model": args.model, "weights": "random",
            "dtype": args.dtype, "source": args.source, "longest": args.longest, "rows": rows, "checked": checked,
        }  # fmt: skip
        write_whole(args.output / "serving.json", by_rows(found), parents=True)
    finite = [row for row in rows if row["rate"]]
    if len(finite) > 1:
        finite.sort(key=lambda row: row["rate"])
        about = f"{found['gpu']}, {args.model} with random weights, {args.dtype}, {args.requests} requests"
        write_whole(args.output / "serving.svg", picture(finite, about).render(), parents=True)
    return 0


def show(served: Served) -> None:
    row = served.row
    say(
        f"{served.rate:g} a second: {served.seconds:.2f} s, {served.steps} steps of {served.running:.0f} texts, "
        f"{row['new_per_s']:.0f} new tokens/s, {served.read} read; "
        f"first token p50 {served.first_p50_ms:.1f} p99 {served.first_p99_ms:.1f} ms; "
        f"between tokens p50 {served.between_p50_ms:.2f} p99 {served.between_p99_ms:.2f} ms"
    )


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
