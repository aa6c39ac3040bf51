"""A bundle of a few entries, compiled for one device when they are first wanted."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

from toolchain.bundles.bundle import Bundle
from toolchain.compiling.progress import progress_bar
from toolchain.contract.entry import EntrySpec
from toolchain.contract.sources import packages


def make_bundle(specs: Iterable[EntrySpec], target: str | None, opened: ExitStack) -> Bundle:
    """The entries, for a target or (None) for the interpreter. It lives as long as `opened`. Raises what the first
    entry that does not compile raised, and ToolchainError where there is no compiler."""
    from toolchain import knobs
    from toolchain.bundles import bundle
    from toolchain.caching.cache import Cache
    from toolchain.compiling import pipeline
    from toolchain.contract import targets

    wanted = [targets.targets()[target]] if target else []
    entries = [(packages()[spec.source], spec) for spec in specs]
    with progress_bar() as progress:
        outcome = pipeline.compile_entries(
            entries, wanted, Cache(knobs.cache_dir()), jobs=knobs.jobs(), progress=progress
        )
    for failure in outcome.failures:
        raise failure.error
    folder = opened.enter_context(tempfile.TemporaryDirectory(prefix="tilestack-"))
    tools = pipeline.tools_used(wanted, (made.artifact.form.kind for made in outcome.compiled))
    return bundle.write(Path(folder) / "bundle", outcome.compiled, tools)
