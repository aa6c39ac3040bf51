"""The GPU resources of a bundle's cubins, by cell and target, for the report."""

from __future__ import annotations

from typing import Any

from toolchain import knobs
from toolchain.bundles.bundle import Bundle
from toolchain.caching.cache import Cache
from toolchain.compiling.cubin import Usage, inspect_all


def of_bundle(bundle: Bundle) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """The usage of each entry: cell, target, then a row for each entry. Needs the toolchain, which reads cubins; what
    it read before comes from the cache. Raises ToolchainError."""
    wanted = [(entry, target, file) for entry in bundle.entries for target, file in entry.cubins.items()]
    usages = inspect_all([bundle.read(file) for _, _, file in wanted], Cache(knobs.cache_dir()), knobs.jobs())
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for (entry, target, _), usage in zip(wanted, usages, strict=True):
        spec = entry.spec
        cell = found.setdefault(spec.cell, {})
        cell.setdefault(target, []).extend(_row(each) for each in usage)
    return found


def _row(usage: Usage) -> dict[str, Any]:
    return {
        "symbol": usage.symbol, "registers": usage.registers, "shared": usage.shared, "spills": usage.spills,
        "local": usage.local, "instructions": usage.instructions, "serialised": usage.serialised,
        "tensor_core": sum(usage.tensor_core.values()),
    }  # fmt: skip
