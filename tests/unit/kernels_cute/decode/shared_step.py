"""A decode step that several ranks share, on the executor: random weights of a whole model, and each rank's part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.cases import Case
from conformance.ops.inputs import Inputs, make_inputs
from conformance.ops.run import references, verdict
from kernels_cute.decode.ranks import RankStep
from kernels_cute.decode.step import maps
from toolchain.contract.artifact import TENSOR_MAPS, Form
from toolchain.contract.entry import EntrySpec
from toolchain.contract.op import ops
from toolchain.cute import dsl as cute
from toolchain.cute.executor.launches.entry import EntryLaunch, launch_together

Array = NDArray[Any]
OP, HEAD, UNITS = "decode_step_of_ranks", 64, 8


@dataclass
class Shared:
    """`whole`: the model's inputs as decode_step takes them. `steps`: the sizes of each rank."""

    steps: Sequence[RankStep]
    case: Case
    whole: Inputs
    arrays: list[dict[str, Array]]
    met: Array

    @classmethod
    def of(cls, steps: Sequence[RankStep], positions: int, seed: int = 1) -> Shared:
        """In a cache of so many positions; behind the one of the new token it has NaN."""
        case = _case(steps, positions)
        whole = make_inputs(case, "bf16", seed=seed)
        cache = np.random.default_rng(seed).standard_normal((case.dims["L"], 2, positions, case.dims["H"] * HEAD))
        cache[:, :, int(whole.arrays["positions"][0]) :] = np.nan
        of_heads = {"cache": cache.astype(whole.outputs["cache"].dtype)}  # which need not be as wide as C together
        whole = replace(whole, outputs={**whole.outputs, **of_heads})
        arrays = [_part(steps, rank, whole) for rank in range(len(steps))]
        return cls(steps, case, whole, arrays, np.zeros((len(steps), steps[0].met), np.int64))

    def run(
        self, kernels: Sequence[cute.Kernel], launches: int = 1, late: tuple[int, int] | None = None,
        *, gives_up: bool = False,
    ) -> None:  # fmt: skip
        """As launches of entries do; all but the last one with another token. `gives_up`: waits run out."""
        names = tuple(param.name for param in ops()[OP].params if param.dims)
        steps = list[list[EntryLaunch]]()
        for i in range(launches):
            steps.append([])
            for rank, (s, kernel, arrays) in enumerate(zip(self.steps, kernels, self.arrays, strict=True)):
                spec = EntrySpec(OP, OP, "cute", "bf16", {}, aligned=names, contiguous=names)
                form = Form(
                    "ptx", "", TENSOR_MAPS, (kernel.threads, 1, 1), kernel.shared_bytes, maps=maps(s),
                    together=s.cluster,
                )  # fmt: skip
                scalars = {"eps": 1e-5, "rank": rank, "visible": self.visible(rank)}
                given = {**arrays, "met": self.met}
                if i + 1 < launches:
                    given["tokens"] = np.array([i], np.int32)
                steps[i].append(EntryLaunch(kernel, spec, form, given, scalars, (s.blocks, 1, 1)))
        launch_together(*steps, late=late, gives_up=gives_up)

    def visible(self, rank: int) -> int:
        """Of a rank's tokens: the last ones of all are there for the kernel."""
        return self.steps[rank].vocabulary - (3 if rank + 1 == len(self.steps) else 0)

    def check(self, launches: int = 1) -> None:
        """Logits and caches against float64; each rank chose among its own tokens, and none waited in vain."""
        found = {
            "logits": np.concatenate([own["logits"] for own in self.arrays], 1),
            "cache": np.concatenate([own["cache"] for own in self.arrays], 3),
        }
        for name, pair in references(self.case, "bf16", self.whole).items():
            made = verdict("decode_step", "bf16", name, found[name], *pair)
            assert made.error <= made.bound, name
        for rank, own in enumerate(self.arrays):
            assert not own["errors"].any() and (own["launches"] == launches).all()
            seen, best = own["logits"][0].astype(np.float32)[: self.visible(rank)], own["values"][0].max()
            assert best == seen.max() and own["indices"][0][own["values"][0] == best].min() == seen.argmax()
        assert (self.met == self.met[0]).all()  # all were told the same


def _case(steps: Sequence[RankStep], positions: int) -> Case:
    s, blocks = steps[0], max(step.blocks for step in steps)
    heads, hidden = sum(step.heads for step in steps), sum(step.hidden for step in steps)
    made = {
        "L": s.layers, "C": s.width, "X": s.positions, "V": sum(step.vocabulary for step in steps),
        "E": 3 * heads * HEAD, "F": hidden, "H": heads, "D": HEAD, "P": positions,
        "N": 1, "TWO": 2, "B": blocks, "W": s.warps,
        "S": s.words + 2 * blocks, "G": hidden // UNITS, "U": UNITS,
    }  # fmt: skip
    return Case("decode_step", made, "")


def _part(steps: Sequence[RankStep], rank: int, whole: Inputs) -> dict[str, Array]:
    """What a rank has."""
    s, given = steps[rank], {**whole.arrays, **whole.outputs}
    before = steps[:rank]
    first = [sum(getattr(each, name) for each in before) for name in ("heads", "hidden", "vocabulary")]
    heads, hidden, tokens = (
        slice(at, at + count) for at, count in zip(first, (s.heads, s.hidden, s.vocabulary), strict=True)
    )
    units = slice(hidden.start // UNITS, hidden.stop // UNITS)
    layers, places = s.layers, given["cache"].shape[2]
    made = {name: given[name] for name in ("proj_bias", "out_bias", "wte", "wpe", "norm_weight", "norm_bias")}
    made |= {name: given[name] for name in ("tokens", "positions")}
    made |= {
        "qkv": given["qkv"].reshape(layers, 3, -1, HEAD, s.width)[:, :, heads].reshape(layers, -1, s.width),
        "qkv_bias": given["qkv_bias"].reshape(layers, 3, -1, HEAD)[:, :, heads].reshape(layers, -1),
        "proj": given["proj"][:, heads], "fc": given["fc"][:, hidden], "fc_bias": given["fc_bias"][:, hidden],
        "out": given["out"][:, units], "head": given["wte"][tokens], "logits": given["logits"][:, tokens],
        "cache": given["cache"].reshape(layers, 2, places, -1, HEAD)[:, :, :, heads].reshape(layers, 2, places, -1),
        "values": np.zeros((1, s.blocks), np.float32), "indices": np.zeros((1, s.blocks), np.int32),
        "launches": np.zeros(s.blocks, np.int32), "sums": np.zeros(s.words, np.int64),
        "errors": np.zeros((s.blocks, s.warps), np.int32),
    }  # fmt: skip
    return {name: np.ascontiguousarray(array).copy() for name, array in made.items()}
