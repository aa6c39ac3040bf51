"""`ci/runner/health.toml`: what a GPU must be like for a job to start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from toolchain.errors import UsageError
from toolchain.tables import Check, check_keys, is_table, natural, one_of, read_table, tables, text, texts

TABLE = Path(__file__).with_name("health.toml")
LIMITS: Mapping[str, Check] = {"seconds": natural, "processes": natural, "free_gib": natural}
RULES: Mapping[str, Check] = {"most": natural, "least": natural, "is": text, "without": texts, "same_as": text}
FIELD: Mapping[str, Check] = {"name": text, "absent": one_of("well", "sick"), "why": text, **RULES}


def _commands(value: Any) -> str | None:
    good = isinstance(value, list) and all(texts(row) is None and row for row in cast("list[Any]", value))
    return None if good else "a list of commands, each a list of texts"


@dataclass(frozen=True)
class Field:
    """A value of nvidia-smi, and one rule for it; the table explains the rules."""

    name: str
    rule: str
    wanted: Any
    absent: str
    why: str


@dataclass(frozen=True)
class Health:
    """The whole table. `xids`: by code, what those mean that a runner does not go on after."""

    seconds: int
    processes: int
    free_gib: int
    fields: Sequence[Field]
    kernel_logs: Sequence[Sequence[str]]
    xids: Mapping[int, str]


def load(path: Path = TABLE) -> Health:
    """Read and check the table. Raises UsageError that names the row and the key."""
    table = read_table(path)
    check_keys(table, {"limits": is_table, "field": tables, "kernel_log": is_table, "xid": tables}, str(path))
    check_keys(table["limits"], LIMITS, f"{path}: limits")
    check_keys(table["kernel_log"], {"commands": _commands}, f"{path}: kernel_log")
    for row in table["xid"]:
        check_keys(row, {"code": natural, "means": text}, f"{path}: xid {row.get('code')}")
    return Health(
        **table["limits"],
        fields=[_field(row, f"{path}: field {row.get('name')}") for row in table["field"]],
        kernel_logs=table["kernel_log"]["commands"],
        xids={row["code"]: row["means"] for row in table["xid"]},
    )


def _field(row: Mapping[str, Any], where: str) -> Field:
    check_keys(row, FIELD, where, optional=list(RULES))
    rules = [name for name in RULES if name in row]
    if len(rules) != 1:
        raise UsageError(f"{where}: it has {len(rules)} rules, not one of {', '.join(RULES)}")
    return Field(row["name"], rules[0], row[rules[0]], row["absent"], row["why"])
