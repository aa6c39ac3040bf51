"""The devices of a model that several share: all in one process, or one in each of those that torchrun has started."""

from __future__ import annotations

from gpt.config import GPTConfig
from toolchain import knobs
from toolchain.errors import UsageError
from toolchain.runtime.peers import Peers, Place, open_peers, open_rank


def check_devices(config: GPTConfig, devices: int, on: str) -> None:
    """Raises UsageError for a model that so many devices cannot share, and for the name of one device alone."""
    if devices < 1:
        raise UsageError(f"a model on {devices} devices: it takes at least 1")
    if on not in ("auto", "cpu", "cuda"):
        raise UsageError(
            f"{devices} devices on {on}", hint="cuda takes the first GPUs; CUDA_VISIBLE_DEVICES says which"
        )
    config.part(0, devices)
    group = knobs.process_group()
    if group is not None and group.ranks != devices:
        raise UsageError(
            f"{devices} devices for the {group.ranks} processes of WORLD_SIZE: each runs one",
            hint=f"ask for {group.ranks}, or unset WORLD_SIZE for one process",
        )


def open_devices(devices: int, on: str, *, sanitize: bool) -> Peers:
    """At least two devices, or the one of this process if it is one of several. See open_peers and open_rank."""
    group = knobs.process_group()
    if group is not None:
        return open_rank(Place(group.rank, group.ranks, group.local, group.meeting), on, sanitize=sanitize)
    names = {"auto": devices, "cpu": ["cpu"] * devices, "cuda": [f"cuda:{number}" for number in range(devices)]}
    return open_peers(names[on], sanitize=sanitize)
