"""Runs kernels of `cute` on a CPU, thread by thread, and checks what they do.

A kernel runs as it stands before its instructions become PTX. Found are accesses outside of a tensor, uninitialised
data, races between threads and with asynchronous copies, missing waits, deadlocks and diverging barriers; counted are
the bank conflicts of shared memory.
"""

from .launches.arguments import ImageMap, TensorMap
from .launches.launch import Report, run
from .state.banks import Conflicts
from .state.findings import (
    Deadlock,
    DivergentBarrier,
    FaultLocation,
    Finding,
    LaneRace,
    Misaligned,
    MissingFence,
    MissingWait,
    NoSemantics,
    OutOfBounds,
    Race,
    Undefined,
    Uninitialised,
)

__all__ = [
    "Conflicts",
    "Deadlock",
    "DivergentBarrier",
    "FaultLocation",
    "Finding",
    "ImageMap",
    "LaneRace",
    "Misaligned",
    "MissingFence",
    "MissingWait",
    "NoSemantics",
    "OutOfBounds",
    "Race",
    "Report",
    "TensorMap",
    "Undefined",
    "Uninitialised",
    "run",
]
