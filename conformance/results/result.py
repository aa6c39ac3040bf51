"""The rows of `results.json`, one per cell and shape, which the report shows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from toolchain.errors import UsageError

from .origin import Origin

FORMAT = 2
KIND = "matrix"
Status = Literal["passed", "failed", "error", "not run"]
NUMBERS = ("error", "bound", "time_us", "time_low_us", "time_high_us", "retries")


@dataclass(frozen=True)
class CellResult:
    """A cell's outcome. `error` and `bound` are absolute; `worst` is the element with that error. `time_us` is the
    median of one launch, with its 95 % interval on a GPU; None if nothing was timed. `entries`: the symbols of what was
    launched. `retries`: how often its job was tried again after an error of the machine.

    Status `failed`: the result is outside its bound. Status `error`: the launch itself raised. `detail` says why.
    """

    cell: str
    source: str
    op: str
    dtype: str
    target: str
    executor: str
    shape: str
    status: Status
    error: float | None = None
    bound: float | None = None
    time_us: float | None = None
    detail: str = ""
    worst: str = ""
    time_low_us: float | None = None
    time_high_us: float | None = None
    entries: Sequence[str] = ()
    retries: int = 0

    @property
    def percent(self) -> float | None:
        """The error in percent of its bound; None if there is no error, or if the result must be exact."""
        return 100 * self.error / self.bound if self.bound and self.error is not None else None

    @property
    def said(self) -> str:
        """`detail`, and whether the job was tried again."""
        times = "" if self.retries == 1 else f" {self.retries} times"
        again = f"tried again{times} after an error of the machine" if self.retries else ""
        return "; ".join(filter(None, (self.detail, again)))

    @property
    def share(self) -> str:
        """`percent` in words; empty if it is None."""
        return "" if self.percent is None else f"{self.percent:.0f} % of its bound"


@dataclass(frozen=True)
class Results:
    """A run: its environment, its rows, and where they come from. `origin`: None in a file of format 1."""

    environment: Mapping[str, str]
    rows: Sequence[CellResult]
    origin: Origin | None = None

    @property
    def interrupted(self) -> str:
        """The signal that ended the run before all cells had run; empty if none did."""
        return self.environment.get("interrupted", "")

    @property
    def green(self) -> bool:
        """Something ran, nothing failed, and the run came to its end."""
        counts = self.counts()
        return counts["passed"] > 0 and counts["failed"] == counts["error"] == 0 and not self.interrupted

    def counts(self) -> Counter[str]:
        return Counter(row.status for row in self.rows)

    def summary(self) -> str:
        counts = self.counts()
        parts = [f"{counts[s]} {s}" for s in ("passed", "failed", "error", "not run") if counts[s] or s == "passed"]
        if again := sum(row.retries > 0 for row in self.rows):
            parts.append(f"{again} of them after a retry")
        return ", ".join([*parts, *["interrupted"] * bool(self.interrupted)])

    def to_json(self) -> str:
        """The document that results.schema.json describes."""
        origin = self.origin.to_json() if self.origin else None
        rows = [asdict(row) for row in self.rows]
        document = {
            "format": FORMAT, "kind": KIND, "environment": dict(self.environment), "origin": origin, "rows": rows,
        }  # fmt: skip
        return json.dumps(document, indent=1) + "\n"

    @classmethod
    def load(cls, path: Path) -> Results:
        """Read a `results.json`. Raises UsageError if it is missing, unreadable or not a file of ours."""
        try:
            document: Any = json.loads(path.read_text())
            old = document["format"] == 1  # has no origin
            if not old and document["format"] != FORMAT:
                raise UsageError(f"{path}: results of format {document['format']}, this version reads 1 and {FORMAT}")
            if not old and document["kind"] != KIND:
                raise UsageError(f"{path}: results of {document['kind']}, not of the matrix")
            origin = None if old or document["origin"] is None else Origin.from_json(document["origin"])
            environment = {str(name): str(value) for name, value in document["environment"].items()}
            return cls(environment, [row_of(row) for row in document["rows"]], origin)
        except FileNotFoundError as error:
            raise UsageError(f"{path}: no such file", hint="tilestack matrix run writes it") from error
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error.strerror}") from error
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise UsageError(f"{path}: not a results.json of ours ({type(error).__name__}: {error})") from error


def row_of(table: Mapping[str, Any]) -> CellResult:
    """A row from its fields as JSON has them. Raises TypeError or ValueError for anything else."""
    fields: dict[str, Any] = {**table, "entries": tuple(table.get("entries", ()))}
    row = CellResult(**fields)
    if row.status not in get_args(Status):
        raise ValueError(f"status {row.status!r}")
    for name, value in asdict(row).items():
        if name == "entries":
            if not all(isinstance(symbol, str) for symbol in value):
                raise TypeError(f"{name} is {value!r}")
            continue
        number = name in NUMBERS
        if not (value is None or isinstance(value, int | float) if number else isinstance(value, str)):
            raise TypeError(f"{name} is {value!r}")
    return row
