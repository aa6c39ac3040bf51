"""A bundle: the output of a compile, for machines without a compiler.

It consists of `manifest.json` and `files/<sha256>.tilebc`, `.ptx`, `.mlir` and `.cubin`. For every entry the manifest
has the EntrySpec, the code that its source made (Tile IR bytecode, which the interpreter runs too, or PTX and the IR of
which it was made, which the executor of `cute` runs), how to launch it, and its cubins by target. It also has the ops'
parameters at the time of writing, the policies of the targets, and which source is the fastest for what. Reading a file
checks its sha256.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from ..contract.artifact import SUFFIXES, Artifact, Form
from ..contract.entries import DEFAULT, committed
from ..contract.entry import EntrySpec
from ..contract.fastest import Pick, picked
from ..contract.op import ops
from ..contract.policy import Policy
from ..errors import BundleError, LaunchError, NotInterpretable, UsageError
from ..files import check_makable, folder_beside

FORMAT = 4
MANIFEST = "manifest.json"
IR = "mlir"  # the suffix of the kernels that PTX was made of
_AGAIN = "compile it again with `tilestack compile`"


@dataclass(frozen=True)
class FileRef:
    """A file of a bundle: its path and the sha256 that it must have."""

    path: Path
    sha256: str


@dataclass(frozen=True)
class BundleEntry:
    """An entry with its compiled forms. `code`: the file of its artifact's code; `form`: how that is launched;
    `cubins`: by target; `fingerprint`: see Compiled; `ir`: the kernel that its PTX was made of, if it is there."""

    spec: EntrySpec
    code: FileRef
    form: Form
    cubins: Mapping[str, FileRef]
    fingerprint: str = ""
    ir: FileRef | None = None

    @property
    def files(self) -> tuple[FileRef, ...]:
        """All of its files."""
        return (self.code, *([self.ir] if self.ir else []), *self.cubins.values())

    @property
    def interpretable(self) -> bool:
        """True if the CPU interpreter can run it, which needs Tile IR bytecode."""
        return self.form.kind == "tile-ir"

    @property
    def bytecode(self) -> FileRef:
        """Its Tile IR bytecode. Raises NotInterpretable if its source made PTX."""
        if not self.interpretable:
            raise self.no_bytecode()
        return self.code

    def no_bytecode(self) -> NotInterpretable:
        """What is said of an entry that the CPU interpreter cannot run."""
        return NotInterpretable(
            f"{self.spec.source}/{self.spec.symbol} is {self.form.kind}, without Tile IR bytecode: the interpreter "
            "cannot run it",
            hint="run it on a GPU",
        )


@dataclass(frozen=True)
class Compiled:
    """An entry as a compile hands it to `write`. `fingerprint`: the source's hash over everything that decides the
    artifact."""

    spec: EntrySpec
    artifact: Artifact
    cubins: Mapping[str, bytes]
    fingerprint: str = ""


@dataclass(frozen=True, eq=False)
class Bundle:
    """A loaded manifest. `entries`: in order of preference. `tools`: version and sha256 of each tool that compiled it,
    by name. `policies`: by target, and `default`. `picks`: which source is the fastest for what, by target."""

    root: Path
    entries: tuple[BundleEntry, ...]
    tools: Mapping[str, Mapping[str, str]]
    policies: Mapping[str, Policy] = field(default_factory=dict)
    picks: Mapping[str, Sequence[Pick]] = field(default_factory=dict)

    @classmethod
    def load(cls, root: str | Path, policies: Mapping[str, Policy] | None = None) -> Bundle:
        """Raises BundleError if `root` has no bundle, or one that we cannot read. `policies`: taken instead of its own,
        to measure the kernels of another commit as this one launches them; without entries of ops that had other
        parameters there, which cannot be launched."""
        root, foreign = Path(root), policies is not None
        path = root / MANIFEST
        try:
            manifest = json.loads(path.read_text())
        except OSError as error:
            raise BundleError(f"no bundle in {root}: {error}", hint=_AGAIN) from error
        except (ValueError, RecursionError) as error:
            raise BundleError(f"{path} is damaged: {error}", hint=_AGAIN) from error
        found = cast("dict[str, Any]", manifest).get("format") if isinstance(manifest, dict) else None
        if found != FORMAT:
            raise BundleError(f"{path} has format {found!r}; this version reads format {FORMAT}", hint=_AGAIN)
        try:
            rows = manifest["entries"]
            if foreign:
                rows = [row for row in rows if not _changed(manifest["ops"], row["spec"]["op"])]
            entries = tuple(_entry(root, row) for row in rows)
            tools = {name: _tool(row) for name, row in manifest["tools"].items()}
            if policies is None:
                listed = manifest["policies"].items()
                policies = {name: Policy.from_table(row, f"policy {name}") for name, row in listed}
            if DEFAULT not in policies:
                raise KeyError(f"policies.{DEFAULT}")
            picks = {
                name: tuple(Pick.from_table(row, f"fastest {name}") for row in listed)
                for name, listed in manifest.get("fastest", {}).items()
            }
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise BundleError(f"{path} is damaged: {type(error).__name__}: {error}", hint=_AGAIN) from error
        except UsageError as error:  # an op, dtype or parameter that this version does not have
            raise BundleError(f"{path} was compiled by another version: {error.args[0]}", hint=_AGAIN) from error
        if not foreign:
            _check_signatures(path, entries, manifest.get("ops"))
        return cls(root, entries, tools, policies, picks)

    @cached_property
    def digest(self) -> str:
        """The same for two bundles whose launches do the same: of all files, policies and picks."""
        files = [(e.spec.source, e.spec.symbol, *(file.sha256 for file in e.files)) for e in self.entries]
        choices = sorted(self.policies.items()), sorted(self.picks.items())
        return hashlib.sha256(repr((files, *choices)).encode()).hexdigest()

    @cached_property
    def sources(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(e.spec.source for e in self.entries))

    @cached_property
    def targets(self) -> tuple[str, ...]:
        """The targets for which at least one entry has a cubin, in the order of the manifest."""
        return tuple(dict.fromkeys(target for e in self.entries for target in e.cubins))

    def policy(self, target: str | None) -> Policy:
        """The policy of a target: its own if the bundle has entries of the target's own table, else the default. The
        interpreter (None) runs the entries of every table, beginning with those of the first target in the manifest,
        so it takes that target's policy."""
        own = [name for name in self.policies if name != DEFAULT and target in (name, None)]
        return self.policies[own[0] if own else DEFAULT]

    def fastest(self, among: Sequence[str], op: str, dtype: str, dims: Mapping[str, int], target: str | None) -> str:
        """The source among these that was measured to be the fastest for a launch on a target (None: the interpreter,
        for which nothing is measured); where nothing was measured, the first of which this bundle has entries of the
        op. The answer may be a source of which the bundle lacks the entry: `select` then says so. Raises BundleError if
        it has none of them."""
        here = [source for source in among if source in self.sources]
        there = [source for source in here if self.entries_of(source, op, dtype)] or here
        if not there:
            raise BundleError(f"{self.root} has no entries of {', '.join(among)}", hint="compile a bundle with one")
        return picked(self.picks.get(target or "", ()), op, dtype, dims) or there[0]

    @cached_property
    def _by_op(self) -> Mapping[tuple[str, str, str], Sequence[BundleEntry]]:
        table: dict[tuple[str, str, str], list[BundleEntry]] = {}
        for entry in self.entries:
            table.setdefault((entry.spec.source, entry.spec.op, entry.spec.dtype), []).append(entry)
        return table

    def entries_of(self, source: str, op: str, dtype: str) -> Sequence[BundleEntry]:
        """The entries of an op, in order of preference; the list may be empty."""
        return self._by_op.get((source, op, dtype), ())

    def find(self, source: str, symbol: str) -> BundleEntry:
        """The entry of that name. Raises BundleError."""
        for entry in self.entries:
            if (entry.spec.source, entry.spec.symbol) == (source, symbol):
                return entry
        raise BundleError(f"{self.root} has no entry {symbol!r} of source {source!r}")

    def select(
        self,
        source: str,
        op: str,
        dtype: str,
        dims: Mapping[str, int],
        misaligned: frozenset[str] = frozenset(),
        gapped: frozenset[str] = frozenset(),
        target: str | None = None,
    ) -> BundleEntry:
        """The first entry for `target` (None: the interpreter) that fits these sizes, misaligned arrays and gaps.

        Raises BundleError if the bundle has no entry for this source, op and dtype, LaunchError if none of them fits.
        """
        entries = self.entries_of(source, op, dtype)
        if not entries:
            have = [f"{s}/{o}[{d}]" for s, o, d in self._by_op if o == op]
            raise BundleError(
                f"{self.root} has no entry for {source}/{op}[{dtype}]; of this op it has {', '.join(have) or 'none'}",
                hint="compile a bundle with that source and dtype",
            )
        refused: list[str] = []
        for entry in entries:
            why = entry.spec.unmet(dims, misaligned, gapped)
            if not entry.spec.runs_on(target):
                why = f"is for {', '.join(entry.spec.targets) or f'GPUs with {min(entry.spec.op_spec.needs)}'}"
            if why is None:
                return entry
            refused.append(f"{entry.spec.symbol}: {why}")
        sizes = ", ".join(f"{name}={size}" for name, size in dims.items())
        raise LaunchError(f"{source}/{op}[{dtype}]: no entry fits {sizes}:\n  " + "\n  ".join(refused))

    def read(self, file: FileRef) -> bytes:
        """The content of a file. Raises BundleError if it is missing or its sha256 differs from the manifest's."""
        try:
            data = file.path.read_bytes()
        except OSError as error:
            raise BundleError(f"the bundle lacks {file.path}: {error}", hint=_AGAIN) from error
        found = hashlib.sha256(data).hexdigest()
        if found != file.sha256:
            raise BundleError(f"{file.path} is damaged: sha256 {found}, the manifest says {file.sha256}", hint=_AGAIN)
        return data


def _entry(root: Path, row: Mapping[str, Any]) -> BundleEntry:
    def file(sha256: str, suffix: str) -> FileRef:
        if len(sha256) != 64 or set(sha256) - set("0123456789abcdef"):
            raise ValueError(f"{sha256!r} is not a sha256")
        return FileRef(root / "files" / f"{sha256}.{suffix}", sha256)

    spec, form = EntrySpec.from_json(row["spec"]), Form.from_json(row["form"])
    if not all(isinstance(row["spec"][name], str) for name in ("symbol", "source")):
        raise TypeError(f"{spec.source!r}/{spec.symbol!r} is not the name of an entry")
    form.check_maps(spec)
    return BundleEntry(
        spec=spec,
        code=file(row["code"], SUFFIXES[form.kind]),
        form=form,
        cubins={target: file(sha256, "cubin") for target, sha256 in row["cubins"].items()},
        fingerprint=str(row["fingerprint"]),
        ir=file(row["ir"], IR) if "ir" in row else None,
    )


def _tool(row: Mapping[str, Any]) -> Mapping[str, str]:
    if not all(isinstance(row[name], str) for name in ("version", "sha256")):
        raise TypeError(f"{row!r} is not a tool's version and sha256")
    return dict(row)


def write(root: str | Path, compiled: Sequence[Compiled], tools: Mapping[str, Mapping[str, str]]) -> Bundle:
    """Writes a bundle and loads it. A bundle in `root` is replaced in one step, after everything is written.

    Raises UsageError if `root` holds anything else, or if two entries of a source have the same symbol.
    """
    root = Path(os.path.realpath(root))  # the target of a link is replaced, not the link
    check_replaceable(root)
    names = [(c.spec.source, c.spec.symbol) for c in compiled]
    if twice := {name for name in names if names.count(name) > 1}:
        raise UsageError(f"several entries have the same source and symbol: {', '.join(map('/'.join, sorted(twice)))}")
    with folder_beside(root) as scratch:
        fresh = scratch / "new"
        (fresh / "files").mkdir(parents=True)
        rows = [_row(fresh, entry) for entry in compiled]
        signatures = {entry.spec.op: ops()[entry.spec.op].signature for entry in compiled}
        policies, picks = _policies(compiled), _picks(compiled)
        fastest = {"fastest": picks} if picks else {}
        manifest = {
            "format": FORMAT, "ops": signatures, "policies": policies, **fastest, "entries": rows, "tools": tools,
        }  # fmt: skip
        (fresh / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")
        replace_folder(root, fresh, scratch / "old")
    return Bundle.load(root)


def _policies(compiled: Sequence[Compiled]) -> dict[str, Any]:
    """The default policy, and those of the targets of whose own tables the bundle has entries. A model must not plan
    for a target's own entries if the bundle lacks them."""
    own = {target for entry in compiled for target in entry.spec.targets}
    return {name: made.to_json() for name, made in committed().policies.items() if name in own or name == DEFAULT}


def _picks(compiled: Sequence[Compiled]) -> dict[str, Any]:
    """Which source is the fastest, for the same targets. Rows of a source of which the bundle has no entry at all are
    left out: then it is the fastest of the others. With some of its entries they stay, so that a missing one is an
    error, and not slow."""
    own = {target for entry in compiled for target in entry.spec.targets}
    there = {entry.spec.source for entry in compiled}
    kept = {
        target: [pick.to_table() for pick in picks if pick.source in there]
        for target, picks in committed().picks.items()
        if target in own
    }
    return {target: rows for target, rows in kept.items() if rows}


def check_replaceable(root: Path) -> None:
    """Raises UsageError if `root` holds anything but a bundle, or cannot be created."""
    if root.exists() and not _looks_like_one(root) and (not root.is_dir() or _names(root)):
        raise UsageError(f"{root} exists and is not a bundle, so it is not overwritten", hint="choose another --output")
    check_makable(root.absolute().parent)


def _check_signatures(path: Path, entries: Sequence[BundleEntry], signatures: Any) -> None:
    """Raises BundleError if ops had other parameters when the kernels were compiled. A GPU would run such a kernel
    without complaint, on arguments that it does not expect."""
    if not isinstance(signatures, dict):
        raise BundleError(f"{path} is damaged: its ops are not a table", hint=_AGAIN)
    found = cast("dict[str, Any]", signatures)
    if missing := sorted({entry.spec.op for entry in entries} - found.keys()):
        raise BundleError(f"{path} is damaged: it has no parameters of {', '.join(missing)}", hint=_AGAIN)
    if changed := [op for op in found if _changed(found, op)]:
        why = f"{', '.join(changed)} had other parameters"
        raise BundleError(f"{path} was compiled by another version: {why}", hint=_AGAIN)


def _changed(signatures: Mapping[str, Any], op: str) -> bool:
    return op not in ops() or signatures[op] != ops()[op].signature


def _names(folder: Path) -> list[str]:
    """The contents of a folder; empty if another process has just put a new bundle in its place."""
    try:
        return [path.name for path in folder.iterdir()]
    except FileNotFoundError:
        return []


def _looks_like_one(folder: Path) -> bool:
    """True if a folder is a bundle, even a damaged one. A manifest.json alone proves nothing: others have one too."""
    files = folder / "files"
    if not ((folder / MANIFEST).is_file() and files.is_dir()):
        return False
    names = [name for name in _names(files) if not name.startswith(".")]  # .nfs0001, .DS_Store
    return all(re.fullmatch(r"[0-9a-f]{64}\.(tilebc|ptx|mlir|cubin)", name) for name in names)


def _row(folder: Path, entry: Compiled) -> dict[str, Any]:
    def store(data: bytes, suffix: str) -> str:
        sha256 = hashlib.sha256(data).hexdigest()
        (folder / "files" / f"{sha256}.{suffix}").write_bytes(data)
        return sha256

    return {
        "spec": entry.spec.to_json(),
        "form": entry.artifact.form.to_json(),
        "code": store(entry.artifact.payload, SUFFIXES[entry.artifact.form.kind]),
        "cubins": {target: store(cubin, "cubin") for target, cubin in entry.cubins.items()},
        "fingerprint": entry.fingerprint,
        **({"ir": store(entry.artifact.ir, IR)} if entry.artifact.ir else {}),
    }


def replace_folder(root: Path, fresh: Path, old: Path) -> None:
    """Replaces `root` by `fresh`. If several processes do so, the last one's bundle remains."""
    try:
        while True:
            with suppress(FileNotFoundError):
                root.rename(old)
            try:
                fresh.rename(root)
            except OSError as error:
                if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                    raise
                shutil.rmtree(old, ignore_errors=True)  # another process was faster: replace what it wrote
            else:
                return
    except BaseException:
        if old.exists() and not root.exists():  # failed or interrupted between the two renames: restore the old bundle
            old.rename(root)
        raise
