"""A source file and its errors: `file:line:col: error: message`, the line, and a caret."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property

from toolchain.errors import SourceError

from .location import Location


class Source:
    """The text of a file; turns offsets in it into line and column."""

    def __init__(self, text: str, filename: str) -> None:
        self.text, self.filename = text, filename

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(i + 1 for i, c in enumerate(self.text) if c == "\n")]

    def location(self, offset: int) -> Location:
        line = bisect_right(self._starts, offset)
        return Location(self.filename, line, offset - self._starts[line - 1] + 1)

    def error(self, offset: int, message: str, *, hint: str | None = None) -> SourceError:
        """The error to raise for the text at `offset`."""
        return self.error_at(self.location(offset), message, hint=hint)

    def error_at(self, place: Location, message: str, *, hint: str | None = None) -> SourceError:
        lines = self.text.split("\n")  # not splitlines(): `location` does not count a form feed as the end of a line
        line = lines[place.line - 1].rstrip("\r") if place.line <= len(lines) else ""
        lead = "".join("\t" if c == "\t" else " " for c in line[: place.column - 1])
        return SourceError(f"{place}: error: {message}\n  {line}\n  {lead}^", hint=hint)
