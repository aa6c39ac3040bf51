"""Several devices of one process: executors that share memory, and launches that meet each other in it.

`open_peers` opens them, on GPUs whose memory the others reach, or on the CPU, where the interpreter runs the launches
of all ranks together. docs/several-gpus.md explains the memory, the flags, and what is checked.
"""

from __future__ import annotations

from .group import Peers, open_peers
from .heap import SymmetricHeap

__all__ = ["Peers", "SymmetricHeap", "open_peers"]
