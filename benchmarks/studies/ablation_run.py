"""Times the stages of the ablation on a GPU: in turns, after each one's logits were checked against PyTorch in f32."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gpt.graphs import Decode, Forward
from gpt.model import GPT
from toolchain.bundles.bundle import Bundle
from toolchain.runtime import open_executor, smi

from ..cases.cases import DecodeCase, ForwardCase
from ..cases.check import Verdict
from ..cases.options import Options
from ..harness.decode import DecodeBench
from ..harness.forward import ForwardBench
from ..harness.harness import Contender, Maker, Outcome, run_contenders
from ..harness.kernels import Kernels
from ..harness.models import Models
from ..harness.rig import Rig, open_rig
from ..peers.pytorch import torch
from ..peers.torch_side import TorchSide, measure_ceilings
from .ablation_model import DECODE, DTYPE, FORWARD, MODEL, SOURCE, STAGES, model
from .stages import WATERFALL, Stage

ROUNDS = 15


class StageModels(Models):
    """The model of each stage, with the same weights."""

    def __init__(self, rig: Rig, config: Any, folder: Path) -> None:
        super().__init__(rig, config, DTYPE)
        self._folder = folder
        self._bundles: dict[str, Bundle] = {}
        self._models: dict[str, GPT] = {}

    def of(self, stage: Stage) -> GPT:
        if stage.name not in self._models:
            name = stage.bundle
            if name not in self._bundles:
                self._bundles[name] = Bundle.load(self._folder / name)
            launcher = Kernels(self._bundles[name], SOURCE).launcher(self.rig.executor)
            self._models[stage.name] = model(stage, self.config, self.weights, launcher, DTYPE)
        return self._models[stage.name]


@dataclass(frozen=True)
class StageForward:
    """The forward pass of a stage, as a contender of the benchmark."""

    bench: ForwardBench
    models: StageModels
    stage: Stage

    def __call__(self) -> Contender:
        made, (batch, length) = self.models.of(self.stage), FORWARD
        tokens = self.bench.tokens.cpu().numpy().astype(np.int32)
        made.forward(tokens)  # what is launched for the first time cannot be captured: modules, and memory between
        forward = Forward(made, batch, length, graph=self.stage.graph)
        forward.set_tokens(tokens)
        executor = self.bench.rig.executor

        def check() -> Verdict:
            forward.logits.fill(float("nan"))
            forward.run()
            executor.synchronize()
            return self.bench.judge(torch.from_dlpack(forward.logits))

        return Contender(check, functools.partial(self.bench.rig.ours.time_us, forward.run))


class StageDecode(DecodeBench):
    """Decoding steps of a stage; the benchmark's own, with the model and the launches of the stage."""

    def stage(self, models: StageModels, stage: Stage) -> Callable[[], Contender]:
        return functools.partial(self.step_of, models.of(stage), functools.partial(Decode, graph=stage.graph))


def run(folder: Path, say: Callable[[str], object]) -> dict[str, Any]:
    """All stages at both shapes. The result is a document with a row for each stage and shape."""
    with open_executor("cuda") as executor:
        side = TorchSide(f"cuda:{executor.device[1]}")
        options = Options(folder, folder, samples=ROUNDS)
        rig = open_rig(executor, [], side, measure_ceilings(side), options, say)
        forward = ForwardCase(MODEL, *FORWARD)
        models = StageModels(rig, forward.config, folder)
        bench = ForwardBench(rig, models, forward)
        before = smi.read(str(executor.device[1]))
        rows = _rows("forward", [Maker(s.name, "ours", StageForward(bench, models, s)) for s in STAGES], rig)
        step = StageDecode(rig, models, DecodeCase(MODEL, *DECODE))
        rows += _rows("decode", [Maker(s.name, "ours", step.stage(models, s)) for s in STAGES], rig)
        return {
            "gpu": executor.name, "driver": smi.query(["driver_version"], str(executor.device[1])),
            "model": MODEL, "dtype": DTYPE, "source": SOURCE, "forward": FORWARD, "decode": DECODE, "rounds": ROUNDS,
            "waterfall": [stage.name for stage in WATERFALL],
            "stages": [asdict(stage) for stage in STAGES], "rows": rows,
            "gpu_before": before, "gpu_after": smi.read(str(executor.device[1])),
        }  # fmt: skip


def _rows(case: str, makers: list[Maker], rig: Rig) -> list[dict[str, Any]]:
    return [_row(case, outcome) for outcome in run_contenders(makers, rig.plan)]


def _row(case: str, outcome: Outcome) -> dict[str, Any]:
    ms = outcome.ms
    found: dict[str, Any] = {"case": case, "stage": outcome.maker.name, "status": outcome.status}
    if ms is None:
        return {**found, "detail": outcome.detail}
    return {**found, "ms": ms.value, "low": ms.low, "high": ms.high, "samples_us": outcome.rounds_us}
