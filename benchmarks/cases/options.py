"""What `gpu` is asked for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from .cases import GROUPS, Group

Kind = Literal["ours", "against", "eager", "graph", "compile", "copy"]
PEERS: tuple[Kind, ...] = ("eager", "graph", "compile")


@dataclass(frozen=True)
class Options:
    """What the command line asks for. `limit_s`: for one peer; `stop_after_s`: no case is begun after it. `against`:
    bundles to compare with, by name. `at_least`: a ratio beside one of them that lies wholly below it fails the run.
    `tree`: what `environment.commit` said as the run began, where this is a process of a run in several; else it is
    asked here."""

    bundle: Path
    output: Path
    only: Sequence[Group] = GROUPS
    case: re.Pattern[str] = re.compile("")
    samples: int = 30
    sources: Sequence[str] = ()
    peers: Sequence[Kind] = PEERS
    limit_s: float = 300.0
    stop_after_s: float = 0.0
    against: Mapping[str, Path] = field(default_factory=dict)
    at_least: float = 0.0
    tree: Mapping[str, str] = field(default_factory=dict)
