"""The text of `print_tko`: C's printf, as far as the printf of a GPU takes it.

Source: CUDA C++ Programming Guide, "Formatted Output": flags `-`, `+`, space, `#` and 0, a width, a precision, and the
sizes h, l and ll. C guarantees 4095 characters for one conversion; a width or precision beyond is refused here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MOST = 4095
KINDS = "diouxXcpsaAeEfFgG"
_SPEC = re.compile(
    r"%(?P<flags>[-+ #0]*)(?P<width>[0-9]*)(?:\.(?P<precision>[0-9]*))?(?P<size>hh?|ll?)?(?P<kind>.?)", re.DOTALL
)


@dataclass(frozen=True)
class Conversion:
    """The place of a value. `precision` is None if it has none; 0 if there is only the dot."""

    flags: str
    width: int
    precision: int | None
    size: str
    kind: str

    def spelled(self, size: str) -> str:
        """The conversion as C writes it, with another size."""
        precision = "" if self.precision is None else f".{self.precision}"
        return f"%{self.flags}{self.width or ''}{precision}{size}{self.kind}"


def parse(text: str) -> list[str | Conversion]:
    """The parts of a text, in order: what it prints as it stands, and the places of values.

    Raises ValueError for a conversion that is none, or whose width or precision is too large.
    """
    parts: list[str | Conversion] = []
    at = 0
    while at < len(text):
        percent = text.find("%", at)
        if percent != at:
            percent = len(text) if percent < 0 else percent
            parts.append(text[at:percent])
            at = percent
        elif text.startswith("%%", at):
            parts.append("%")
            at += 2
        else:
            found = _SPEC.match(text, at)
            assert found is not None
            parts.append(_conversion(found))
            at = found.end()
    return parts


def _conversion(found: re.Match[str]) -> Conversion:
    spelled, kind = found[0], found["kind"]
    if not kind:
        raise ValueError(f"the text ends within the conversion {spelled!r}: a percent sign is written %%")
    if kind not in KINDS:
        raise ValueError(f"{spelled!r} is not a conversion of a GPU's printf, which end in one of {KINDS}")
    width, precision = found["width"], found["precision"]
    for name, digits in (("width", width), ("precision", precision or "")):
        if len(digits.lstrip("0")) > len(str(MOST)) or int(digits or 0) > MOST:
            raise ValueError(f"the {name} of a conversion is {_shortened(digits)}, and may be {MOST} at most")
    most = None if precision is None else int(precision or 0)
    return Conversion(found["flags"], int(width or 0), most, found["size"] or "", kind)


def _shortened(digits: str) -> str:
    return digits if len(digits) <= 20 else f"a number of {len(digits)} digits"
