"""One line of the doctor's table, and the table as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..errors import DeviceError, ToolchainError
from ..pinned.compatibility import Misfit

SCHEMA = 1  # of the JSON: raised when a key changes its meaning or goes; keys may be added


@dataclass(frozen=True)
class Check:
    """One line of the table. The status `note` marks something worth knowing that is not broken. `advice`: what to do;
    empty if nothing is wrong. `device`: it is about the GPU and its driver, not about what compiles."""

    subject: str
    status: Literal["ok", "note", "bad"]
    found: str
    advice: str = ""
    device: bool = False

    def to_json(self) -> dict[str, str]:
        return {"subject": self.subject, "status": self.status, "found": self.found, "next": self.advice}


def misfit(subject: str, why: Misfit, *, status: Literal["note", "bad"] = "bad", device: bool = False) -> Check:
    """The line of a pair that does not fit."""
    return Check(subject, status, why.pair, why.next, device)


def exit_code(lines: Sequence[Check]) -> int:
    """0 if nothing is broken, notes included; 7, as of a device error, if only the GPU or its driver is; else 4."""
    bad = [line for line in lines if line.status == "bad"]
    if not bad:
        return 0
    return DeviceError.exit_code if all(line.device for line in bad) else ToolchainError.exit_code


def render(lines: Sequence[Check]) -> str:
    """The table as text, with a summary as its last line."""
    width = max(len(line.subject) for line in lines)
    out: list[str] = []
    for line in lines:
        out.append(f"{line.status:4}  {line.subject:{width}}  {line.found}")
        if line.advice:
            out.append(f"{'':4}  {'':{width}}  next: {line.advice}")
    bad = [line.subject for line in lines if line.status == "bad"]
    failed = f"{len(bad)} of {len(lines)} checks failed: {', '.join(bad)}"
    out.append(failed if bad else f"all {len(lines)} checks passed")
    return "\n".join(out)


def to_json(lines: Sequence[Check]) -> dict[str, Any]:
    """The table for scripts; docs/doctor.md describes it."""
    return {"schema": SCHEMA, "exit_code": exit_code(lines), "checks": [line.to_json() for line in lines]}
