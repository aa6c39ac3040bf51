"""Compiles the bundles of the ablation's stages. It needs no GPU."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path

import numpy as np

from gpt.config import PRESETS
from gpt.launches import DryExecutor, launched
from gpt.model import GPT
from gpt.weights import random_weights
from toolchain import bundle, knobs
from toolchain.cache import Cache
from toolchain.entry import EntrySpec
from toolchain.errors import ToolchainError
from toolchain.pipeline import compile_entries, tools_used
from toolchain.sources import load_source, packages
from toolchain.targets import select

from .ablation import DTYPE, FORWARD, MODEL, SEED, SMS, SOURCE, STAGES, TARGET, decoder, model
from .stages import Stage


def _use(made: GPT) -> None:
    made.forward(np.zeros(FORWARD, np.int32))
    step, reset = decoder(made)
    reset()
    step.run()


def build(folder: Path) -> None:
    """A bundle for each set of entries, with what its stages launch."""
    config = PRESETS[MODEL]
    weights = random_weights(config, SEED).astype(DTYPE)
    package = packages()[SOURCE]
    everything = [spec for spec in load_source(package).entries() if spec.runs_on(TARGET)]
    wanted: dict[str, tuple[Stage, dict[str, EntrySpec]]] = {}
    for stage in STAGES:
        specs = stage.entries(everything)
        _, found = wanted.setdefault(stage.bundle, (stage, {}))
        used = launched(
            specs, config, weights, DTYPE, DryExecutor(TARGET, SMS), _use, functools.partial(model, stage)
        )  # fmt: skip
        names = {spec.symbol for spec in used}
        found |= {spec.symbol: spec for spec in specs if spec.symbol in names}
        print(f"{stage.name}: {len(names)} entries", flush=True)
    targets, cache = select([TARGET]), Cache.configured()
    order = {spec.symbol: number for number, spec in enumerate(everything)}
    for name, (stage, found) in wanted.items():
        entries = [(package, spec) for spec in sorted(found.values(), key=lambda spec: order[spec.symbol])]
        outcome = compile_entries(entries, targets, cache, jobs=knobs.jobs())
        if outcome.failures:
            first = outcome.failures[0]
            raise ToolchainError(f"{name}: {len(outcome.failures)} cells did not compile; {first.cell}: {first.error}")
        compiled = outcome.compiled
        if not stage.overlap:
            compiled = [
                replace(one, artifact=replace(one.artifact, form=replace(one.artifact.form, waits=False)))
                for one in compiled
            ]
        bundle.write(folder / name, compiled, tools_used(targets, ["tile-ir"]))
        print(f"{folder / name}: {len(compiled)} entries, {outcome.made} made", flush=True)
