"""Verifies that a published bundle is the result of its sources: makes every file again, without the compile cache, and
compares.

The manifest says what to make: entries by name, targets, bytecode versions. The contents of an entry come from this
checkout, so a manifest that was changed does not match either.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ..bundles.archive import unlisted
from ..bundles.bundle import MANIFEST, Bundle, BundleEntry, Compiled, FileRef, write
from ..caching.cache import Cache
from ..contract.entry import EntrySpec
from ..contract.sources import load_source
from ..contract.targets import BYTECODE as TILE_IR_VERSION
from ..contract.targets import Target, targets
from ..errors import BundleError, UsageError
from ..pinned.pins import pins
from ..pinned.tools import tool
from .pipeline import Failure, Progress, compile_entries, silent, tools_used

Status = Literal["match", "mismatch", "missing", "extra", "damaged"]
STATUSES: tuple[Status, ...] = ("match", "mismatch", "missing", "extra", "damaged")
CODE, OF_CODE = "code", "ir"  # the code, and the IR of which PTX was made


@dataclass(frozen=True)
class RebuiltFile:
    """The result for one file of the bundle. `kind`: `code` (bytecode or PTX), `ir`, a target, `manifest` or `extra`;
    `what`: `source/symbol`, or empty.

    missing: the manifest lists the file, but the bundle lacks it. extra: the other way round. damaged: the file was
    changed after it was written. mismatch: the file is intact, but making it again gives another one, or it cannot be
    made here; `detail` says why.
    """

    file: str
    kind: str
    what: str
    status: Status
    detail: str = ""


@dataclass(frozen=True)
class Verification:
    """The result for a bundle. `differences`: how this machine's tools and sources differ from the bundle's; if they
    do, mismatches are to be expected. `part`: only a part of the bundle was asked for."""

    rows: Sequence[RebuiltFile]
    differences: Sequence[str]
    failures: Sequence[Failure]
    part: bool

    @property
    def counts(self) -> Mapping[Status, int]:
        found = Counter(row.status for row in self.rows)
        return {status: found[status] for status in STATUSES}

    @property
    def matches(self) -> bool:
        return all(row.status == "match" for row in self.rows)


@dataclass(frozen=True)
class Wanted:
    """An entry of the bundle, those of its files that were asked for, by kind, and the same entry of this checkout."""

    published: BundleEntry
    files: Mapping[str, FileRef]
    module: str | None
    here: EntrySpec | None

    @property
    def name(self) -> str:
        return _name(self.published)

    @property
    def targets(self) -> tuple[str, ...]:
        return tuple(kind for kind in self.files if kind not in (CODE, OF_CODE))


def _name(entry: BundleEntry) -> str:
    return f"{entry.spec.source}/{entry.spec.symbol}"


def choose(
    bundle: Bundle, modules: Mapping[str, str], only: Sequence[str] = (), of_targets: Sequence[str] = ()
) -> list[Wanted]:
    """The files to verify: of these entries `only`, by symbol or `source/symbol`, for these targets; by default all.

    `modules`: a source's package by the source's name. Raises UsageError for a name that the bundle does not have.
    """
    names = {name for entry in bundle.entries for name in (entry.spec.symbol, _name(entry))}
    if unknown := [name for name in only if name not in names]:
        raise UsageError(f"{bundle.root} has no entry {', '.join(unknown)}", hint="its manifest.json has their names")
    if unknown := [name for name in of_targets if name not in bundle.targets]:
        raise UsageError(
            f"{bundle.root} has no cubins for {', '.join(unknown)}",
            hint=f"one of {', '.join(bundle.targets) or 'none: it is bytecode only'}",
        )
    here = {
        (source, spec.symbol): spec
        for source in bundle.sources
        if source in modules
        for spec in load_source(modules[source]).entries()
    }
    return [
        Wanted(
            entry,
            {CODE: entry.code}
            | ({OF_CODE: entry.ir} if entry.ir else {})
            | {name: ref for name, ref in entry.cubins.items() if not of_targets or name in of_targets},
            modules.get(entry.spec.source),
            here.get((entry.spec.source, entry.spec.symbol)),
        )
        for entry in bundle.entries
        if not only or entry.spec.symbol in only or _name(entry) in only
    ]


def differences(bundle: Bundle, wanted: Sequence[Wanted]) -> list[str]:
    """How the tools and sources here differ from those that the manifest names. The tools' files are hashed for this.
    Raises ToolchainError if a tool that is needed is missing here."""
    found: list[str] = []
    if any(row.targets for row in wanted):
        for name, row in bundle.tools.items():
            if name not in pins().tools:
                found.append(f"tool {name} {row.get('version')}: this checkout has no such tool")
                continue
            ours = {"version": tool(name).version, "sha256": tool(name).sha256}
            if dict(row) != ours:
                found.append(f"tool {name}: the bundle was made by {_tool(row)}, here is {_tool(ours)}")
    for row in wanted:
        if row.module is None:
            found.append(f"entry {row.name}: this checkout has no source {row.published.spec.source!r}")
        elif row.here is None:
            found.append(f"entry {row.name}: this checkout does not have it")
        elif row.here != row.published.spec:
            found.append(f"entry {row.name}: this checkout describes it differently")
    by_source = Counter(
        row.published.spec.source
        for row in wanted
        if row.module and row.here and row.published.fingerprint
        if load_source(row.module).fingerprint(row.here) != row.published.fingerprint
    )
    found += [
        f"source {source}: {count} entries were made from other kernels or by another exporter than this checkout's"
        for source, count in by_source.items()
    ]
    return found


def _tool(row: Mapping[str, str]) -> str:
    return f"{row.get('version')} (sha256 {row.get('sha256', '?')[:16]}…)"


def verify(
    bundle: Bundle,
    wanted: Sequence[Wanted],
    found: Sequence[str],
    *,
    jobs: int,
    progress: Progress = silent,
) -> Verification:
    """Makes the wanted files again and compares. `found`: the result of `differences`."""
    part = [row.published for row in wanted] != list(bundle.entries) or any(
        len(row.files) != len(row.published.files) for row in wanted
    )
    with tempfile.TemporaryDirectory(prefix="tilestack-") as scratch:
        made, failures = _make(wanted, Path(scratch) / "cache", jobs, progress)
        rows = [
            _compare(bundle, row, kind, ref, made.get(row.name)) for row in wanted for kind, ref in row.files.items()
        ]
        if not part:
            rows.append(_compare_manifest(bundle, [made[row.name] for row in wanted if row.name in made], scratch))
            rows += [
                RebuiltFile(name, "extra", "", "extra", "the manifest does not list it") for name in unlisted(bundle)
            ]
    return Verification(rows, found, failures, part)


def _make(
    wanted: Sequence[Wanted], cache: Path, jobs: int, progress: Progress
) -> tuple[dict[str, Compiled], list[Failure]]:
    """The entries that can be made here, by `source/symbol`. Entries of the same bytecode version and the same targets
    are compiled together."""
    known = targets()
    groups: dict[tuple[str, tuple[str, ...]], list[tuple[str, EntrySpec]]] = {}
    for row in wanted:
        if row.module is not None and row.here is not None:
            names = tuple(name for name in row.targets if name in known)
            groups.setdefault((row.published.form.version or TILE_IR_VERSION, names), []).append((row.module, row.here))
    made: dict[str, Compiled] = {}
    failures: list[Failure] = []
    for (version, names), entries in groups.items():
        chosen: list[Target] = [known[name] for name in names]
        outcome = compile_entries(entries, chosen, Cache(cache), jobs=jobs, version=version, progress=progress)
        made |= {f"{done.spec.source}/{done.spec.symbol}": done for done in outcome.compiled}
        failures += outcome.failures
    return made, failures


def _compare(bundle: Bundle, wanted: Wanted, kind: str, ref: FileRef, made: Compiled | None) -> RebuiltFile:
    name = ref.path.relative_to(bundle.root).as_posix()
    if not ref.path.is_file():
        return RebuiltFile(name, kind, wanted.name, "missing", "the manifest lists it")
    try:
        bundle.read(ref)
    except BundleError as error:
        return RebuiltFile(name, kind, wanted.name, "damaged", f"changed after it was written: {error.args[0]}")
    if made is None:
        why = "did not compile here" if wanted.here else "this checkout has no such entry"
        return RebuiltFile(name, kind, wanted.name, "mismatch", why)
    own = {CODE: made.artifact.payload, OF_CODE: made.artifact.ir}
    content = own[kind] if kind in own else made.cubins.get(kind)
    if content is None:
        return RebuiltFile(name, kind, wanted.name, "mismatch", f"this checkout has no target {kind}")
    sha256 = hashlib.sha256(content).hexdigest()
    if sha256 != ref.sha256:
        return RebuiltFile(name, kind, wanted.name, "mismatch", f"made again, its sha256 is {sha256}")
    return RebuiltFile(name, kind, wanted.name, "match")


def _compare_manifest(bundle: Bundle, made: Sequence[Compiled], scratch: str) -> RebuiltFile:
    used = {name for entry in bundle.entries for name in entry.cubins}
    tools = tools_used((t for name, t in targets().items() if name in used), {e.form.kind for e in bundle.entries})
    again = write(Path(scratch) / "bundle", made, tools)
    if (again.root / MANIFEST).read_bytes() == (bundle.root / MANIFEST).read_bytes():
        return RebuiltFile(MANIFEST, "manifest", "", "match")
    reasons: list[str] = []
    if again.tools != bundle.tools:
        reasons.append("tools")
    if _signatures(again) != _signatures(bundle):
        reasons.append("the ops' parameters")
    ours = {_name(entry): entry for entry in again.entries}
    for field in ("spec", "form", "fingerprint"):
        other = [
            _name(entry)
            for entry in bundle.entries
            if _name(entry) not in ours or getattr(ours[_name(entry)], field) != getattr(entry, field)
        ]
        if other:
            reasons.append(f"{field} of {len(other)} entries, the first {other[0]}")
    for entry in bundle.entries:
        hashes = _hashes(entry)
        if _name(entry) in ours and _hashes(ours[_name(entry)]) != hashes:
            reasons.append("sha256s of files")
            break
    return RebuiltFile(
        MANIFEST, "manifest", "", "mismatch", f"it differs in {'; '.join(reasons) or 'how it is written'}"
    )


def _signatures(bundle: Bundle) -> Any:
    return json.loads((bundle.root / MANIFEST).read_text()).get("ops")


def _hashes(entry: BundleEntry) -> list[str]:
    return [ref.sha256 for ref in entry.files]
