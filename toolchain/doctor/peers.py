"""Whether the GPUs of this machine reach each other's memory, and through what."""

from __future__ import annotations

from ..errors import DeviceError
from .check import Check

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
