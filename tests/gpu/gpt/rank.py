"""One of two processes that share out rows, a GPU each: `python -m tests.gpu.gpt.rank BUNDLE CHECKPOINT COPIED_ROWS`.

It reads the checkpoint one tensor at a time, and prints a hash of the logits of each of PASSES passes.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import numpy as np

from gpt.parallel import ParallelForward, ParallelGPT
from gpt.parameters import one_by_one, spread
from toolchain import knobs
from toolchain.bundles.bundle import Bundle
from toolchain.runtime import Launcher
from toolchain.runtime.peers import Peers, Place, open_rank

TOKENS = np.random.default_rng(2).integers(0, 257, (5, 512)).astype(np.int32)
PASSES = 20


def digests(peers: Peers, bundle: Bundle, checkpoint: Path) -> list[str]:
    """Of many passes, one behind the other: each stores what the next one reads, or adds to."""
    config, stored, _ = one_by_one.load(checkpoint)
    launchers = [Launcher(bundle, "cute", each, borrows_from="mlir") for each in peers.executors]
    model = ParallelGPT(config, stored, launchers, peers, "bf16")
    passes = ParallelForward(model, *TOKENS.shape, spread=True)
    passes.set_tokens(TOKENS)
    found: list[str] = []
    for _ in range(PASSES):
        passes.run()
        found.append(hashlib.sha256(passes.logits.numpy().tobytes()).hexdigest())
    peers.synchronize()
    return found


def main() -> None:
    """As torchrun's variables say which rank this is."""
    bundle, checkpoint, spread.COPIED_ROWS = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    group = knobs.process_group()
    assert group is not None, "started by itself"
    with open_rank(Place(group.rank, group.ranks, group.local, group.meeting), "cuda") as peers:
        print(*digests(peers, Bundle.load(bundle), checkpoint))


if __name__ == "__main__":
    main()
