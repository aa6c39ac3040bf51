"""How the error of each dtype grows with the number of layers, beside PyTorch's, against float64.

python -m benchmarks.studies.depth build FOLDER    # on any machine
python -m benchmarks.studies.depth run FOLDER      # on a GPU with PyTorch
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gpt.config import PRESETS, GPTConfig
from gpt.model import GPT
from gpt.parameters.weights import Weights, random_weights

from .command import Say, build_or_run

SOURCE = "mlir"
DTYPES = ("f32", "tf32", "f16", "bf16")
LAYERS = (1, 2, 4, 8, 12, 24, 48)
TOKENS, SEED = 256, 7


def config(layers: int) -> GPTConfig:
    """GPT-2 124M with more or fewer layers."""
    return replace(PRESETS["gpt2"], n_layer=layers)


def build(folder: Path) -> None:
    """The bundle with what the forward pass launches in each dtype."""
    from gpt.launches import DryExecutor, forward_passes, launched
    from toolchain.contract.entry import EntrySpec

    from . import bundles

    def use(specs: Sequence[EntrySpec], executor: DryExecutor) -> None:
        weights = random_weights(config(1), SEED)
        for dtype in DTYPES:
            launched(specs, config(1), weights, dtype, executor, forward_passes((1, TOKENS)))

    bundles.write(folder, bundles.launched_by(use))


def run(folder: Path, say: Say) -> dict[str, Any]:
    """The errors of logits, relative to float64's in the Frobenius norm."""
    from toolchain.bundles.bundle import Bundle
    from toolchain.runtime import Launcher, open_executor

    from ..peers import torch_gpt
    from ..peers.pytorch import torch

    torch.set_grad_enabled(False)
    torch.set_float32_matmul_precision("highest")
    rows: list[dict[str, Any]] = []
    tokens = np.random.default_rng(SEED).integers(0, config(1).vocab_size, (1, TOKENS)).astype(np.int32)
    with open_executor("cuda") as executor:
        launcher = Launcher(Bundle.load(folder), SOURCE, executor)
        for layers in LAYERS:
            model = config(layers)
            weights = random_weights(model, SEED)
            theirs = functools.partial(_pytorch, torch_gpt, torch, model, weights, tokens)
            exact = theirs(torch.float64)
            for dtype in DTYPES:
                made = GPT(model, weights, launcher, dtype)
                ours = torch.from_dlpack(made.forward(tokens))
                executor.synchronize()
                row = {"layers": layers, "dtype": dtype, "error": _error(ours, exact)}
                if dtype != "tf32":  # PyTorch decides for itself which products take tf32
                    kinds = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
                    row["pytorch_error"] = _error(theirs(kinds[dtype]), exact)
                rows.append(row)
                say(str(row))
            torch.cuda.empty_cache()
        return {"gpu": executor.name, "torch": torch.__version__, "tokens": TOKENS, "rows": rows}


def _pytorch(
    torch_gpt: Any, torch: Any, model: GPTConfig, weights: Weights, tokens: np.ndarray[Any, Any], dtype: Any
) -> Any:
    made = torch_gpt.build(model, torch_gpt.state(model, weights, torch.device("cuda:0")), dtype)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        return made(torch.from_numpy(tokens.astype(np.int64)).cuda())[..., : model.vocab_size]


def _error(result: Any, exact: Any) -> float:
    return float(f"{((result.double() - exact).norm() / exact.norm()).item():.4g}")


def main(words: Sequence[str] | None = None) -> None:
    build_or_run("depth", __doc__, build, run, words)


if __name__ == "__main__":
    main()
