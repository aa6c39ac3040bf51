"""Where results come from: the commit, the command and the bundle, the machine, and the kernels that ran.

With it anyone can compile the bundle again and check that its kernels are the ones that were measured: `unlike`.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

from toolchain.bundles import checkout
from toolchain.bundles.bundle import MANIFEST, Bundle
from toolchain.errors import BundleError, UsageError
from toolchain.knobs import container_image
from toolchain.runtime import Executor, smi
from toolchain.runtime.executor import Loaded

T = TypeVar("T")
PACKAGES = ("torch", "transformers", "triton", "cupy-cuda13x", "cuda-bindings", "numpy", "ml-dtypes")


@dataclass(frozen=True)
class Origin:
    """Where results come from.

    `commit`, `changes`: see `checkout.commit`; an empty `commit` is unknown, empty `changes` are a clean tree.
    `command`: its words. `date`: UTC, ISO 8601.
    `bundle`: the sha256 of its manifest, its noted commit, and how many entries each cell has by target.
    `tools`: version and sha256 of each tool that compiled it. `host`: machine, Python and packages.
    `devices`: of each executor its name, GPU, its name for nvidia-smi (`address`), driver, and clocks before and after.
    `kernels`: those that ran, in order.
    """

    commit: str
    changes: str
    command: Sequence[str]
    date: str
    bundle: Mapping[str, Any]
    tools: Mapping[str, Mapping[str, str]]
    host: Mapping[str, Any]
    devices: Sequence[Mapping[str, Any]] = ()
    kernels: Sequence[Loaded] = ()

    def with_kernels(self, ran: Iterable[Loaded]) -> Origin:
        return replace(self, kernels=tuple(sorted({*self.kernels, *ran})))

    def to_json(self) -> dict[str, Any]:
        return {
            "commit": self.commit,
            "dirty": bool(self.changes) if self.commit else None,
            "changes": self.changes,
            "command": list(self.command),
            "date": self.date,
            "bundle": dict(self.bundle),
            "tools": {name: dict(tool) for name, tool in self.tools.items()},
            "host": dict(self.host),
            "devices": [dict(device) for device in self.devices],
            "kernels": [kernel._asdict() for kernel in self.kernels],
        }

    @classmethod
    def from_json(cls, table: Mapping[str, Any]) -> Origin:
        """Raises KeyError or TypeError for anything else."""
        return cls(
            commit=str(table["commit"]),
            changes=str(table["changes"]),
            command=tuple(map(str, table["command"])),
            date=str(table["date"]),
            bundle=table["bundle"],
            tools=table["tools"],
            host=table["host"],
            devices=tuple(table["devices"]),
            kernels=tuple(Loaded(**kernel) for kernel in table["kernels"]),
        )


def describe(
    bundle: Bundle, executors: Sequence[Executor], command: Sequence[str], tree: Mapping[str, str] | None = None
) -> Origin:
    """The origin of what is about to run; it has no kernels yet. `tree`: the answer of `checkout.commit`, if it was
    asked before. Raises UsageError if git fails."""
    tree = tree or checkout.commit(bundle.root)
    return Origin(
        commit=tree["commit"],
        changes=tree["changes"],
        command=tuple(command),
        date=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        bundle=identity(bundle),
        tools=bundle.tools,
        host=host(),
        devices=_at_once(device, executors),
    )


def _at_once(read: Callable[[T], Mapping[str, Any]], devices: Sequence[T]) -> list[Mapping[str, Any]]:
    """What is read of each device: nvidia-smi takes some time for one."""
    with ThreadPoolExecutor(len(devices) or 1) as pool:
        return list(pool.map(read, devices))


def identity(bundle: Bundle) -> dict[str, Any]:
    """What tells a bundle from others, and how many entries each cell of it has by target."""
    cells: dict[str, dict[str, int]] = {}
    for entry in bundle.entries:
        spec = entry.spec
        counts = cells.setdefault(spec.cell, {})
        for target in entry.cubins:
            counts[target] = counts.get(target, 0) + 1
    note = checkout.stamped(bundle.root)
    manifest = (bundle.root / MANIFEST).read_bytes()
    return {
        "sha256": hashlib.sha256(manifest).hexdigest(),
        "commit": note.get("commit", ""),
        "changes": note.get("changes", ""),
        "cells": cells,
    }


def host() -> dict[str, Any]:
    """Machine, Python, the container image, and the packages that matter to what is measured."""
    versions: dict[str, str] = {}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    where = {"python": platform.python_version(), "machine": platform.platform(), "image": container_image()}
    return {**where, "packages": versions}


def device(executor: Executor) -> dict[str, Any]:
    """An executor, and the state of its GPU now. Where there is no nvidia-smi, `driver` and the clocks are empty."""
    found: dict[str, Any] = {"executor": executor.name, "kind": executor.kind}
    if executor.kind == "cpu":
        return found
    name = smi.name_of(executor.device[1])
    driver = smi.query(["name", "driver_version"], name) or ["", ""]
    return {
        **found, "gpu": driver[0], "address": name, "target": executor.target, "sms": executor.sms,
        "driver": driver[1], "before": dict(smi.read(name)), "after": {},
    }  # fmt: skip


def ended(origin: Origin, ran: Iterable[Loaded]) -> Origin:
    """The origin of what has run: with its kernels, and with the state of the GPUs now."""

    def after(device: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**device, "after": dict(smi.read(device["address"]))} if "address" in device else device

    return replace(origin, devices=_at_once(after, origin.devices)).with_kernels(ran)


def read(path: Path) -> Origin:
    """The origin of a file of results, of the matrix or of the benchmarks. Raises UsageError if it has none."""
    try:
        table: Any = json.loads(path.read_text())["origin"]
        return Origin.from_json(table)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UsageError(
            f"{path} does not say where its results come from ({type(error).__name__}: {error})",
            hint="results of `tilestack matrix run` and `python -m benchmarks gpu` of this version say it",
        ) from error


def tools(origin: Origin) -> str:
    return ", ".join(f"{name} {tool['version']}" for name, tool in origin.tools.items()) or "unknown tools"


def only(origin: Origin, entries: Collection[tuple[str, str]]) -> Origin:
    """With the kernels of these entries alone, (source, symbol)."""
    return replace(origin, kernels=tuple(k for k in origin.kernels if (k.source, k.symbol) in entries))


def unlike(origin: Origin, bundle: Bundle) -> list[str]:
    """A line for each kernel that ran and is not in this bundle, byte for byte. Every file is read and hashed."""
    files = {(e.spec.source, e.spec.symbol, target): file for e in bundle.entries for target, file in e.cubins.items()}
    files |= {(e.spec.source, e.spec.symbol, "cpu"): e.code for e in bundle.entries}
    lines: list[str] = []
    for kernel in origin.kernels:
        file, name = files.get(kernel[:3]), f"{kernel.source}/{kernel.symbol} for {kernel.target}"
        if file is None:
            lines.append(f"{name}: the bundle has none; {kernel.sha256} ran")
        elif file.sha256 != kernel.sha256:
            lines.append(f"{name}: sha256 {file.sha256} in the bundle, {kernel.sha256} ran")
        else:
            try:
                bundle.read(file)
            except BundleError as error:
                lines.append(f"{name}: {error.args[0]}")
    return lines
