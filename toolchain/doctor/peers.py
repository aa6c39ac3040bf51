"""Whether the GPUs of this machine reach each other's memory, and through what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import DeviceError
from .check import Check

if TYPE_CHECKING:
    from ..runtime.peers.runs import Run

PATIENCE_S = 5.0  # a rank that waits longer may wait in vain
TOPOLOGY = "nvidia-smi topo -p2p r, and nvidia-smi topo -m, show how they are connected"


def peers() -> list[Check]:
    """Nothing where there are fewer than two GPUs."""
    try:
        from ..runtime import gpus
        from ..runtime.peers.links import NoNVML, links, nvlinks
    except ImportError:  # the lines of the packages say it
        return []
    try:
        found = gpus()
        pairs = links() if len(found) > 1 else []
    except DeviceError as error:
        return [Check("peers", "note", f"cannot be asked: {error.args[0]}", device=True)]
    if not pairs:
        return []
    apart = [f"cuda:{pair.one} to cuda:{pair.other}" for pair in pairs if not pair.access]
    if apart:
        return [Check("peers", "note", f"no access to the memory from {', '.join(apart)}", TOPOLOGY, device=True)]
    slow = [f"cuda:{pair.one} to cuda:{pair.other}" for pair in pairs if not pair.atomics]
    if slow:
        said = f"access without atomics, which ranks meet by, from {', '.join(slow)}"
        return [Check("peers", "note", said, TOPOLOGY, device=True)]
    try:
        up = nvlinks()
        through = "; NVLinks that are up: " + ", ".join(f"cuda:{index} {count}" for index, count in up.items())
    except NoNVML as error:
        through = f"; {error}"
    return [
        Check("peers", "ok", f"all {len(found)} GPUs reach each other's memory, with atomics{through}", device=True)
    ]


def runs() -> list[Check]:
    """Models that several processes run at the moment: who of them waits for whom."""
    try:
        from ..runtime.peers.runs import runs as find
    except ImportError:
        return []
    return [_run(each) for each in find()]


def _run(run: Run) -> Check:
    told = "; ".join(each for each in (run.counts, run.lost) if each)
    said = f"{len(run.members)} processes, {', '.join(run.members)}; {told}"
    if run.lost or run.waits_s > PATIENCE_S:
        where = f"; waiting for {run.waits_s:.0f} s: {run.waiting}" if run.waiting else ""
        return Check("run", "note", said + where, "docs/several-gpus.md says what to do when a run hangs", device=True)
    return Check("run", "ok", said, device=True)
