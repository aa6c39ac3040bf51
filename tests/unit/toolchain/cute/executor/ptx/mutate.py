"""PTX with a mistake in it."""

from __future__ import annotations


def lines_of(text: str, opcode: str) -> list[int]:
    """The lines that have an instruction, from 0."""
    return [at for at, line in enumerate(text.splitlines()) if opcode in line]


def without(text: str, opcode: str, which: int = 0, lines: int = 1) -> str:
    """The text without one of the instructions with an opcode; `lines`: that go with it. No other line moves."""
    kept, at = text.splitlines(), lines_of(text, opcode)[which]
    kept[at : at + lines] = [""] * lines
    return "\n".join(kept) + "\n"


def changed(text: str, opcode: str, which: int, old: str, new: str) -> str:
    """The text with a part of one of the instructions with an opcode changed."""
    kept, at = text.splitlines(), lines_of(text, opcode)[which]
    assert old in kept[at]
    kept[at] = kept[at].replace(old, new)
    return "\n".join(kept) + "\n"
