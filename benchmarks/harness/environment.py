"""Records the environment of a run: GPU, driver, libraries, commit, the bundle and the tools that compiled it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from conformance.results import origin
from toolchain.bundles.bundle import MANIFEST, Bundle
from toolchain.bundles.checkout import stamped


def tools(bundle: Bundle) -> dict[str, Any]:
    """The bundle's hash and the tools that compiled it."""
    manifest = (bundle.root / MANIFEST).read_bytes()
    return {
        "bundle": hashlib.sha256(manifest).hexdigest(),
        "tools": {name: dict(row) for name, row in bundle.tools.items()},
    }


def host() -> dict[str, Any]:
    """Date, machine and packages."""
    return {"date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"), **origin.host()}


def describe(
    bundle: Bundle, others: Mapping[str, Bundle], gpu: Mapping[str, Any], tree: Mapping[str, str]
) -> dict[str, Any]:
    """The whole environment. `others`: bundles to compare with, by name. `gpu`: the GPU's name, driver and so on, as
    the caller read them. `tree`: the answer of `checkout.commit`."""
    against = {name: {**stamped(other.root), **tools(other)} for name, other in others.items()}
    return {**gpu, **host(), **tree, **tools(bundle), **({"against": against} if against else {})}
