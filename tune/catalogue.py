"""`variants.json`: lists the variants that were compiled, and the others with the reason. It holds all that measuring
and applying need to know about the search, so that a GPU machine only needs the folder."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from toolchain.contract.entry import EntrySpec
from toolchain.errors import UsageError
from toolchain.files import write_whole

from .spaces import MODEL, Dims


def document(version: int, head: Mapping[str, Any], rows: Sequence[str]) -> str:
    """JSON of the format's version, the head, and rows that are JSON text already, one per line."""
    opening = json.dumps({"format": version, **head})[:-1]
    return f'{opening}, "rows": [\n' + ",\n".join(rows) + "\n]}\n"


FORMAT = 2
FILE = "variants.json"
VARIANTS = "bundle"  # of the compiled variants, in the same folder
OWN = "own"  # the bundle of the sources' own entries: a variant must give the same results, faster

Status = Literal["compiled", "failed", "pruned"]


@dataclass(frozen=True)
class Candidate:
    """A variant and its status. `failed`: it does not compile. `pruned`: its code is not worth a measurement.
    `compiled`: to be measured. `why`: the reason for the first two. `usage`: registers per thread, bytes of shared
    memory, spills."""

    space: str
    classes: tuple[str, ...]
    spec: EntrySpec
    status: Status
    why: str = ""
    usage: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Contest:
    """A class of sizes of an op and dtype. All entries that are tried for it are measured on the same shapes, and one
    wins. `cold`: see ShapeClass."""

    op: str
    dtype: str
    name: str
    where: tuple[str, ...]
    shapes: tuple[Dims, ...]
    cold: bool = True

    @property
    def title(self) -> str:
        return f"{self.op} {self.dtype} {self.name}"


@dataclass(frozen=True)
class Catalogue:
    """All candidates and contests. `tools`: the sha256 of each tool that compiled them, by name."""

    target: str
    tools: Mapping[str, str]
    contests: tuple[Contest, ...]
    candidates: tuple[Candidate, ...]

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(candidate.spec.source for candidate in self.candidates))

    def entrants(self, contest: Contest, source: str) -> Iterator[Candidate]:
        """The candidates of a source that are measured in a contest."""
        for candidate in self.candidates:
            spec = candidate.spec
            same = (spec.source, spec.op, spec.dtype) == (source, contest.op, contest.dtype)
            if same and contest.name in candidate.classes and candidate.status == "compiled":
                yield candidate

    def only(
        self, what: str = MODEL, classes: re.Pattern[str] | None = None, spaces: Collection[str] = ()
    ) -> Catalogue:
        """The catalogue with only the contests of one op (or of all that was compiled), or of these `spaces`, in
        classes whose name matches. Raises UsageError if none is left."""
        entered = {
            (candidate.spec.op, candidate.spec.dtype, name)
            for candidate in self.candidates
            if candidate.space in spaces
            for name in candidate.classes
        }
        kept = tuple(
            contest
            for contest in self.contests
            if (what in (contest.op, MODEL) or (contest.op, contest.dtype, contest.name) in entered)
            and (classes is None or classes.search(contest.name))
        )
        if not kept:
            have = ", ".join(contest.title for contest in self.contests)
            raise UsageError(f"nothing of {what} was compiled for these classes", hint=f"there are: {have}")
        return replace(self, contests=kept)

    def counts(self) -> str:
        """How many candidates there are of each status, in words."""
        all_ = [candidate.status for candidate in self.candidates]
        return ", ".join(f"{all_.count(status)} {status}" for status in dict.fromkeys(all_))

    def save(self, folder: Path) -> None:
        head = {name: value for name, value in asdict(self).items() if name != "candidates"}
        rows = [json.dumps(asdict(candidate)) for candidate in self.candidates]
        write_whole(folder / FILE, document(FORMAT, head, rows), parents=True)

    @classmethod
    def load(cls, folder: Path) -> Catalogue:
        """Read the catalogue of a folder. Raises UsageError if it is missing or cannot be read."""
        path = folder / FILE
        try:
            found: Any = json.loads(path.read_text())
            if found["format"] != FORMAT:
                raise UsageError(f"{path}: format {found['format']}, this version reads {FORMAT}")
            return cls(
                found["target"],
                found["tools"],
                tuple(_contest(row) for row in found["contests"]),
                tuple(_candidate(row) for row in found["rows"]),
            )
        except (FileNotFoundError, NotADirectoryError) as error:
            raise UsageError(f"{path}: no such file", hint="tilestack tune --phase compile writes it") from error
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error.strerror}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise UsageError(f"{path} is damaged: {type(error).__name__}: {error}", hint="compile again") from error


def _contest(row: Mapping[str, Any]) -> Contest:
    return Contest(row["op"], row["dtype"], row["name"], tuple(row["where"]), tuple(row["shapes"]), row["cold"])


def _candidate(row: Mapping[str, Any]) -> Candidate:
    spec = EntrySpec.from_json(row["spec"])
    return Candidate(row["space"], tuple(row["classes"]), spec, row["status"], row["why"], row["usage"])


def merged(contests: Sequence[Contest]) -> tuple[Contest, ...]:
    """Each once, in order."""
    return tuple({(c.op, c.dtype, c.name): c for c in contests}.values())
