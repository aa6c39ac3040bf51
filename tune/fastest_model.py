"""Times a GPT-2's passes with and without what `fastest.py` picked. A launch overlaps with those beside it, and leaves
its results in the caches: an entry that is faster alone may make a model slower."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpt.config import preset
from gpt.graphs import Decode, Forward
from gpt.launches import DryExecutor, launched
from gpt.model import GPT, KVCache
from gpt.parallel import AnyGPT
from gpt.parameters.weights import Weights, random_weights
from toolchain.bundles.bundle import Bundle
from toolchain.contract.entry import EntrySpec
from toolchain.contract.fastest import Pick
from toolchain.contract.sources import load_source, packages, registered
from toolchain.runtime import Executor, Launcher, open_executor

SOURCE = "fastest"
MODEL = "gpt2"
FORWARD = ((1, 64), (1, 256), (1, 512), (1, 1024), (8, 256), (16, 256), (8, 1024), (32, 1024))  # sequences, tokens
DECODE = (1, 8, 64)  # sequences
POSITIONS = 1024  # of a cache, all but one filled
SMS = 132  # the multiprocessors that are assumed where the entries are chosen without a GPU
SAMPLES, WARM_UP = 20, 3
NOISE = 0.003  # a pass is slower if it takes longer by more than this share

Run = tuple[Callable[[], object], Callable[[], object]]  # makes one pass, and what has to be done before it


@dataclass(frozen=True)
class Passed:
    """One pass of the model with one pick, beside one without any: medians in microseconds."""

    name: str
    op: str
    shape_class: str
    source: str
    us: float
    without_us: float

    @property
    def is_slower(self) -> bool:
        return self.us > (1 + NOISE) * self.without_us


def launched_in_passes(sources: Sequence[str], target: str, dtype: str) -> list[EntrySpec]:
    """The entries that the passes launch with the kernels of each source. The number of layers does not matter."""
    config = replace(preset(MODEL), n_layer=1, vocab_size=1024)
    weights, found = random_weights(config, 0), list[EntrySpec]()

    def use(model: AnyGPT) -> None:
        assert isinstance(model, GPT)
        for size in FORWARD:
            model.forward(np.zeros(size, np.int32))
        for batch in DECODE:
            cache = KVCache(model, batch, POSITIONS)
            model.argmax(model.decode(np.zeros(batch, np.int32), cache))

    for source in sources:
        others = [each for each in (source, registered()[source].borrows_from) if each]
        specs = [s for each in others for s in load_source(packages()[each]).entries() if s.runs_on(target)]
        found += launched(specs, config, weights, dtype, DryExecutor(target, SMS), use)
    return found


def in_passes(
    bundle: Bundle, picks: Sequence[Pick], executor: str, dtype: str, say: Callable[[str], object]
) -> Iterator[Passed]:
    """Every pass with each pick that it launches, and with all of them, in turns with one without picks. Yields a row
    for each pick; those of all together are only said."""
    config = preset(MODEL)
    weights = random_weights(config, 0).astype(dtype)
    (target,) = bundle.targets
    first = next(iter(registered()[SOURCE].best_of))
    others = [pick for pick in picks if pick.source != first]
    with open_executor(executor) as device:
        # One model serves all: only what its launcher picks differs, and that is in the graph that is captured.
        model = _model(bundle, weights, device, dtype)
        for name, prepare in _passes():
            whole = _with(model, bundle, target, others)
            runs: dict[str, Run] = {"": prepare(_with(model, bundle, target, ())), "all": prepare(whole)}
            taken: dict[str, Pick] = {}
            for pick in others:
                if pick.op not in whole.launcher.ran.get(pick.source, ()):
                    continue
                changed = _with(model, bundle, target, (pick,))
                run, key = prepare(changed), f"{pick.op} {pick.shape_class}"
                if pick.op in changed.launcher.ran.get(pick.source, ()):  # else it launches another class of the op
                    runs[key], taken[key] = run, pick
            times = _turns(device, runs)
            say(f"{name}: {times['']:.5g} us, with all picks {times['all']:.5g}")
            for key, pick in taken.items():
                passed = Passed(name, pick.op, pick.shape_class, pick.source, times[key], times[""])
                say(f"  with {pick.source}'s {key} {passed.us:.5g}{', slower' if passed.is_slower else ''}")
                yield passed


def _model(bundle: Bundle, weights: Weights, device: Executor, dtype: str) -> GPT:
    return GPT(preset(MODEL), weights, Launcher(bundle, SOURCE, device), dtype)


def _with(model: GPT, bundle: Bundle, target: str, picks: Sequence[Pick]) -> GPT:
    """The same model, on the same weights, with other picks."""
    return model.launched_by(Launcher(replace(bundle, picks={target: tuple(picks)}), SOURCE, model.executor))


def _passes() -> Iterator[tuple[str, Callable[[GPT], Run]]]:
    for batch, length in FORWARD:

        def forward(model: GPT, batch: int = batch, length: int = length) -> Run:
            made = Forward(model, batch, length)
            return made.run, lambda: None

        yield f"forward {batch}x{length}", forward
    for batch in DECODE:

        def decode(model: GPT, batch: int = batch) -> Run:
            made = Decode(model, KVCache(model, batch, POSITIONS))
            tokens, lengths = np.zeros(batch, np.int32), np.full(batch, POSITIONS - 1, np.int32)
            return made.run, lambda: made.reset(tokens, lengths)

        yield f"decode {batch}", decode


def _turns(device: Executor, runs: dict[str, Run]) -> dict[str, float]:
    """The median time of each run in microseconds: a sample of each in turns, in random orders."""
    samples: dict[str, list[float]] = {key: [] for key in runs}
    draw = random.Random(0)
    for number in range(-WARM_UP, SAMPLES):
        for key in draw.sample(list(runs), len(runs)):
            run, prepare = runs[key]
            prepare()
            start = device.record()
            run()
            end = device.record()
            device.synchronize()
            if number >= 0:
                samples[key].append(end.us_since(start))
    return {key: statistics.median(times) for key, times in samples.items()}
