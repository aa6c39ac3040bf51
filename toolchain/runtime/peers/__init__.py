"""Several devices: executors that share memory, and launches that meet each other in it.

`open_peers` opens all of them in one process, on GPUs whose memory the others reach, or on the CPU, where the
interpreter runs the launches of all ranks together. `open_rank` opens that of one process of several.
docs/several-gpus.md explains the memory, the flags, and what is checked.
"""

from __future__ import annotations

from .collectives import Collectives
from .group import Peers, open_peers
from .heap import SymmetricHeap
from .process import open_rank
from .world import LOADING_S, Place

__all__ = ["LOADING_S", "Collectives", "Peers", "Place", "SymmetricHeap", "open_peers", "open_rank"]
