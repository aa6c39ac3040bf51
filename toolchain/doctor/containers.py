"""The container engine, and the file by which it gives containers the GPUs."""

from __future__ import annotations

import re

from ..knobs import ENGINE, engine_address
from ..native import engine
from .check import Check

GENERATE = "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"
_START = {
    "Permission denied": "sudo usermod -aG docker $USER, then log in again",
    "Connection refused": "sudo systemctl start docker",
}


def container_engine() -> Check:
    """Whether an engine listens. Only the native tools need one, so a missing one is a note, but not one that was
    asked for."""
    tried: dict[str, str] = {}
    for address in engine.addresses():
        path = address.removeprefix("unix://")
        if path == address:  # over the network
            return Check("container engine", "ok", f"{address}, not asked")
        if (problem := engine.unreachable(path)) is None:
            return Check("container engine", "ok", address)
        tried[path] = problem
    said = "; ".join(f"{path}: {problem}" for path, problem in tried.items())
    advice = next((_START[problem] for problem in tried.values() if problem in _START), "")
    if engine_address():
        wrong = f"unset {ENGINE.name} and DOCKER_HOST, or start that engine"
        return Check("container engine", "bad", said, advice or wrong)
    if advice:
        return Check("container engine", "note", f"{said}; only building the native tools needs one", advice)
    return Check(
        "container engine", "note", "none; only building the native tools needs one", "sudo apt install podman"
    )


def cdi(driver: str | None) -> Check | None:
    """The description of the GPUs for containers. `driver`: the loaded one's version; without one nothing is asked."""
    if driver is None:
        return None
    files = [path for folder in engine.CDI for path in sorted(folder.glob("*nvidia*"))]
    if not files:
        said = f"no file in {' or '.join(map(str, engine.CDI))}: containers have no GPU through CDI"
        return Check("cdi", "note", said, GENERATE)
    for path in files:
        try:
            known = set(re.findall(r"libcuda\.so\.(\d+\.\d+(?:\.\d+)?)", path.read_text()))
        except OSError as error:
            return Check("cdi", "bad", f"{path}: {error.strerror}", f"sudo chmod a+r {path}", True)
        if known and driver not in known:
            said = f"{path} is of driver {', '.join(sorted(known))}, and {driver} is loaded"
            return Check("cdi", "bad", said, GENERATE, True)
    return Check("cdi", "ok", " ".join(str(path) for path in files), device=True)
