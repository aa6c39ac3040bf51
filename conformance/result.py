"""The rows of `results.json`, one per cell and shape, which the report shows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from toolchain.errors import UsageError

Status = Literal["passed", "failed", "error", "not run"]


@dataclass(frozen=True)
class Row:
    """A cell's outcome. `error` and `bound` are absolute. `time_us` is one launch, None if nothing was timed.

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

    @property
    def percent(self) -> float | None:
        """The error in percent of its bound; None if there is no error, or if the result must be exact."""
        return 100 * self.error / self.bound if self.bound and self.error is not None else None

    @property
    def share(self) -> str:
        """`percent` in words; empty if it is None."""
        return "" if self.percent is None else f"{self.percent:.0f} % of its bound"


@dataclass(frozen=True)
class Results:
    """A run: its environment and its rows."""

    environment: Mapping[str, str]
    rows: Sequence[Row]

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
        return ", ".join([*parts, *["interrupted"] * bool(self.interrupted)])

    def to_json(self) -> str:
        document = {"format": 1, "environment": dict(self.environment), "rows": [asdict(row) for row in self.rows]}
        return json.dumps(document, indent=1) + "\n"

    @classmethod
    def load(cls, path: Path) -> Results:
        """Read a `results.json`. Raises UsageError if it is missing, unreadable or not a file of ours."""
        try:
            document: Any = json.loads(path.read_text())
            if document["format"] != 1:
                raise UsageError(f"{path}: results of format {document['format']}, this version reads 1")
            environment = {str(name): str(value) for name, value in document["environment"].items()}
            return cls(environment, [row_of(row) for row in document["rows"]])
        except FileNotFoundError as error:
            raise UsageError(f"{path}: no such file", hint="tilestack matrix run writes it") from error
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error.strerror}") from error
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise UsageError(f"{path}: not a results.json of ours ({type(error).__name__}: {error})") from error


def row_of(table: Mapping[str, Any]) -> Row:
    """A row from its fields as JSON has them. Raises TypeError or ValueError for anything else."""
    row = Row(**table)
    if row.status not in get_args(Status):
        raise ValueError(f"status {row.status!r}")
    for name, value in asdict(row).items():
        number = name in ("error", "bound", "time_us")
        if not (value is None or isinstance(value, int | float) if number else isinstance(value, str)):
            raise TypeError(f"{name} is {value!r}")
    return row
