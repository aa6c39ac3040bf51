"""Compiles the bundles of the ablation's stages. It needs no GPU."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path

import numpy as np

from gpt.config import PRESETS
from gpt.launches import DryExecutor, launched
from gpt.model import GPT
from gpt.parallel import AnyGPT
from gpt.parameters.weights import random_weights
from toolchain.bundles.bundle import Compiled
from toolchain.contract.entry import EntrySpec

from . import bundles
from .ablation_model import DTYPE, FORWARD, MODEL, SEED, STAGES, decoder, model
from .stages import Stage


def build(folder: Path) -> None:
    """A bundle for each set of entries, with what its stages launch."""
    config = PRESETS[MODEL]
    weights = random_weights(config, SEED).astype(DTYPE)
    everything = bundles.entries()
    wanted: dict[str, tuple[Stage, dict[str, EntrySpec]]] = {}
    for stage in STAGES:
        specs = stage.entries(everything)
        _, found = wanted.setdefault(stage.bundle, (stage, {}))
        executor = DryExecutor(bundles.TARGET, bundles.SMS)
        used = launched(specs, config, weights, DTYPE, executor, _use, functools.partial(model, stage))
        names = {spec.symbol for spec in used}
        found |= {spec.symbol: spec for spec in specs if spec.symbol in names}
        print(f"{stage.name}: {len(names)} entries", flush=True)
    order = {spec.symbol: number for number, spec in enumerate(everything)}
    for name, (stage, found) in wanted.items():
        specs = sorted(found.values(), key=lambda spec: order[spec.symbol])
        bundles.write(folder / name, specs, _same if stage.overlap else _apart)


def _use(made: AnyGPT) -> None:
    assert isinstance(made, GPT)  # as `model` makes it
    made.forward(np.zeros(FORWARD, np.int32))
    step, reset = decoder(made)
    reset()
    step.run()


def _same(compiled: Compiled) -> Compiled:
    return compiled


def _apart(compiled: Compiled) -> Compiled:
    """Begins only after the launch before it has ended."""
    return replace(
        compiled, artifact=replace(compiled.artifact, form=replace(compiled.artifact.form, waits=False))
    )  # fmt: skip
