"""The cost of a deployment of GPT-2: bytes on disk, import time, memory, and time from a cold start to the first token.

    python -m benchmarks.studies.deploy build FOLDER    # the bundle, on any machine
    python -m benchmarks.studies.deploy run FOLDER      # on a GPU with PyTorch

Both sides read the same random weights in bf16 from the same file, which is in the page cache, and continue a prompt of
64 tokens by one token. Each start is a process of its own.
"""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from gpt.config import PRESETS
from gpt.parameters.weights import random_weights, save
from toolchain.runtime import gpus

from .command import Say, build_or_run

PROMPT, NEW = 64, 16
RUNS = 5
HERE = Path(__file__).resolve().parents[2]
OURS = ("numpy", "ml_dtypes", "cuda-bindings", "safetensors")
THEIRS = ("torch", "safetensors", "numpy")
CODE = ("toolchain", "gpt", "conformance", "tilestack")  # of this repository
NO_CODE = {"__pycache__", "checkpoint"}  # the shipped model is not the one that is deployed here

# Each prints its marks in seconds since the process was started, and its memory.
COMMON = """
import json, resource, sys, time
started, weights, bundle = float(sys.argv[1]), sys.argv[2], sys.argv[3]
marks = {}
def mark(name): marks[name] = time.time() - started
def done(token, free, total):
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"marks": marks, "token": token, "host_bytes": rss, "gpu_bytes": total - free}))
"""
STARTS = {
    "tilestack": """
import numpy as np
from gpt.model import GPT, KVCache
from toolchain.bundles.bundle import Bundle
from toolchain.runtime import Launcher, driver, open_executor
mark("imported")
with open_executor("cuda") as executor:
    model = GPT.from_pretrained(weights, launcher=Launcher(Bundle.load(bundle), "mlir", executor), dtype="bf16")
    mark("loaded")
    logits = model.prefill(np.arange(64, dtype=np.int32)[None], KVCache(model, 1))
    token = int(model.argmax(logits)[0])
    mark("first token")
    status, free, total = driver.load().cuMemGetInfo()
    if status != 0:
        raise SystemExit(f"cuMemGetInfo: {status!s}")
    done(token, free, total)
""",
    "pytorch": """
import torch
from safetensors.torch import load_file
from benchmarks.peers.torch_gpt import Cache, build, padded
from gpt.config import PRESETS
mark("imported")
config = PRESETS["gpt2"]
def ready(name, value):  # Hugging Face stores linear weights as (in, out)
    if name == "wte.weight":
        return torch.nn.functional.pad(value, (0, 0, 0, padded(config.vocab_size) - config.vocab_size))
    return value.t().contiguous() if value.dim() == 2 and name != "wpe.weight" else value
with torch.inference_mode():
    stored = load_file(weights + "/model.safetensors", "cuda")
    model = build(config, {name: ready(name, value) for name, value in stored.items()}, torch.bfloat16)
    mark("loaded")
    cache = Cache(*([torch.empty(1, config.n_head, config.n_ctx, config.head_size, dtype=torch.bfloat16, device="cuda")
                     for _ in range(config.n_layer)] for _ in "kv"))
    tokens = torch.arange(64, device="cuda")[None]
    model.fill(tokens[:, :-1], cache)
    logits = model.step(tokens[:, -1], torch.tensor([63], device="cuda"), cache)
    token = int(logits[..., :config.vocab_size].argmax())
    mark("first token")
done(token, *torch.cuda.mem_get_info())
""",
}


def build(folder: Path) -> None:
    """The bundle with what the model launches to continue a text."""
    from gpt.launches import DryExecutor, continue_texts, launched
    from toolchain.contract.entry import EntrySpec

    from . import bundles

    def use(specs: Sequence[EntrySpec], executor: DryExecutor) -> None:
        config = PRESETS["gpt2"]
        launched(
            specs, config, random_weights(config, 0).astype("bf16"), "bf16", executor, continue_texts([PROMPT], NEW)
        )

    bundles.write(folder, bundles.launched_by(use))


def run(folder: Path, say: Say) -> dict[str, Any]:
    """Starts both sides in turn, after one start that is not counted."""
    starts: dict[str, list[dict[str, Any]]] = {name: [] for name in STARTS}
    with tempfile.TemporaryDirectory() as weights:
        config = PRESETS["gpt2"]
        save(Path(weights), config, random_weights(config, 0).astype("bf16"))
        for number in range(RUNS + 1):
            for name, script in STARTS.items():
                words = [sys.executable, "-c", COMMON + script, str(time.time()), weights, str(folder)]
                ran = subprocess.run(words, capture_output=True, text=True, check=False, cwd=HERE)
                if ran.returncode:
                    raise SystemExit(f"{name} does not start:\n{ran.stderr}")
                if number:
                    starts[name].append(json.loads(ran.stdout.splitlines()[-1]))
                    say(f"{name}: {ran.stdout.splitlines()[-1]}")
    disk = {
        "tilestack": {**_packages(OURS), "this repository": _bytes(*CODE), "bundle": _size(folder)},
        "pytorch": _packages(THEIRS),
    }
    return {
        "gpu": gpus()[0].name, "runs": RUNS, "python": sys.version.split()[0], "disk": disk, "starts": starts,
        "medians": _medians(starts),
    }  # fmt: skip


def _medians(starts: dict[str, list[dict[str, Any]]]) -> dict[str, dict[str, float]]:
    made: dict[str, dict[str, float]] = {}
    for name, found in starts.items():
        marks = {key: statistics.median(start["marks"][key] for start in found) for key in found[0]["marks"]}
        memory = {key: statistics.median(start[key] for start in found) for key in ("host_bytes", "gpu_bytes")}
        made[name] = {**marks, **memory}
    return made


def _packages(names: Iterable[str]) -> dict[str, int]:
    """Bytes of the installed packages and of all that they depend on here."""
    sizes: dict[str, int] = {}
    waiting = list(names)
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in sizes:
            continue
        try:
            found = metadata.distribution(name)
        except metadata.PackageNotFoundError:  # for another platform, or an extra that is not installed
            continue
        files = found.files or []
        sizes[name] = sum(path.stat().st_size for file in files if (path := Path(str(file.locate()))).is_file())
        for wanted in found.requires or ():
            if "extra ==" not in wanted:
                waiting.append(re.split(r"[^\w.-]", wanted, maxsplit=1)[0])
    return sizes


def _bytes(*folders: str) -> int:
    return sum(_size(HERE / folder) for folder in folders)


def _size(folder: Path) -> int:
    files = (path for path in folder.rglob("*") if path.is_file() and not NO_CODE & set(path.parts))
    return sum(path.stat().st_size for path in files)


def main(words: Sequence[str] | None = None) -> None:
    build_or_run("deploy", __doc__, build, run, words)


if __name__ == "__main__":
    main()
