"""TOML tables, checked key by key. A check returns what a value must be, or None if the value is right."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from .errors import UsageError

Check = Callable[[Any], "str | None"]


_AT = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")  # how tomllib ends its messages


def read_table(path: Path) -> dict[str, Any]:
    """A TOML file's content. Raises UsageError that begins with `file:line:column` where the TOML is broken."""
    return parse_table(path, read_text(path))


def read_text(path: Path) -> str:
    """Raises UsageError."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error


def parse_table(path: Path, content: str) -> dict[str, Any]:
    """As `read_table`, of a file that has been read."""
    try:
        return tomllib.loads(content)
    except tomllib.TOMLDecodeError as error:
        at = _AT.search(str(error))
        line, column = (at[1], at[2]) if at and at[1] else (content.count("\n") + 1, 1)
        why = _AT.sub("", str(error))
        raise UsageError(f"{path}:{line}:{column}: not valid TOML: {why}", hint="correct this line") from error


def place(path: Path, *texts: str) -> str:
    """`file:line` of the last of these texts, each looked for after the one before it; the file alone where one of them
    does not stand there."""
    content, at = path.read_text(encoding="utf-8"), 0
    for text in texts:
        at = content.find(text, at)
        if at < 0:
            return str(path)
        at += len(text)
    return f"{path}:{content.count(chr(10), 0, at) + 1}"


def header(name: str) -> str:
    """How a table of this name begins in a TOML file that is written by hand; `[name]` is one of several."""
    return f"\n[{name}]"


def check_keys(table: Mapping[str, Any], keys: Mapping[str, Check], where: str, optional: Sequence[str] = ()) -> None:
    """Raises UsageError if a table has an unknown key, lacks one that is not optional, or has a wrong value."""
    if unknown := [key for key in table if key not in keys]:
        raise UsageError(f"{where}: unknown {', '.join(unknown)}", hint=f"it takes {', '.join(keys)}")
    if missing := [key for key in keys if key not in table and key not in optional]:
        raise UsageError(f"{where}: it has no {', '.join(missing)}")
    for key, value in table.items():
        if wanted := keys[key](value):
            raise UsageError(f"{where}: {key} is {value!r}, not {wanted}")


def text(value: Any) -> str | None:
    return None if isinstance(value, str) and value else "a text"


def text_or_empty(value: Any) -> str | None:
    return None if isinstance(value, str) else "a text"


def flag(value: Any) -> str | None:
    return None if isinstance(value, bool) else "true or false"


def texts(value: Any) -> str | None:
    good = isinstance(value, list) and all(isinstance(item, str) for item in cast("list[Any]", value))
    return None if good else "a list of texts"


def tables(value: Any) -> str | None:
    good = isinstance(value, list) and all(isinstance(item, dict) for item in cast("list[Any]", value))
    return None if good else "a list of tables"


def is_table(value: Any) -> str | None:
    return None if isinstance(value, dict) else "a table"


def pairs(value: Any) -> str | None:
    rows = cast("list[list[Any]]", value) if isinstance(value, list) else [[]]
    return None if all(texts(row) is None and len(row) == 2 for row in rows) else "a list of pairs of texts"


def table_of(item: Callable[[Any], bool], what: str) -> Check:
    """Checks for a table whose values are all `what`."""

    def check(value: Any) -> str | None:
        good = isinstance(value, dict) and all(map(item, cast("dict[str, Any]", value).values()))
        return None if good else f"a table of {what}"

    return check


def one_of(*values: str) -> Check:
    """Checks for one of these texts."""
    return lambda value: None if value in values else f"one of {', '.join(values)}"


def is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    return is_integer(value) or isinstance(value, float)


def integer(value: Any) -> str | None:
    return None if is_integer(value) else "an integer"


def positive(value: Any) -> str | None:
    return None if is_number(value) and value > 0 else "a number above 0"


def some_texts(value: Any) -> str | None:
    return None if texts(value) is None and value else "a list of texts, at least one"


integers = table_of(is_integer, "integers")


def natural(value: Any) -> str | None:
    return None if is_integer(value) and value >= 0 else "an integer from 0"


def integers_list(value: Any) -> str | None:
    good = isinstance(value, list) and all(is_integer(item) for item in cast("list[Any]", value))
    return None if good else "a list of integers"
