"""Strings and names as MLIR spells them."""

from __future__ import annotations

import re


def quote(text: str) -> str:
    r"""A string literal; a byte that is not printable ASCII is spelled `\0A`."""
    return '"' + "".join(
        chr(b) if 0x20 <= b < 0x7F and b not in b'"\\' else f"\\{b:02X}" for b in text.encode()
    ) + '"'  # fmt: skip


def spell_name(text: str) -> str:
    """A name in MLIR's spelling: in quotes unless it is a word."""
    return text if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_$.]*", text, re.ASCII) else quote(text)
