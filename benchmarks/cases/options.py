"""The options of the command `gpu`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from .cases import DEFAULT_GROUPS, Group

Kind = Literal["ours", "against", "eager", "graph", "compile", "copy"]
PEERS: tuple[Kind, ...] = ("eager", "graph", "compile")


@dataclass(frozen=True)
class Options:
    """The options of a run.

    `limit_s`: the limit for building and checking one peer.
    `stop_after_s`: no case is begun after this time.
    `against`: bundles to compare with, by name.
    `at_least`: the run fails if the ratio to one of these lies below it with its whole interval.
    `tree`: the answer of `checkout.commit` at the start of a run that uses several processes; else None.
    `words`: the command line.
    """

    bundle: Path
    output: Path
    only: Sequence[Group] = DEFAULT_GROUPS
    case: re.Pattern[str] = re.compile("")
    samples: int = 30
    sources: Sequence[str] = ()
    peers: Sequence[Kind] = PEERS
    limit_s: float = 300.0
    stop_after_s: float = 0.0
    against: Mapping[str, Path] = field(default_factory=dict)
    at_least: float = 0.0
    tree: Mapping[str, str] = field(default_factory=dict)
    words: Sequence[str] = ()
