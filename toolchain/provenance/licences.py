"""The licence of every package in the lock, and what policy.toml lets us do with it.

A licence is an SPDX expression, https://spdx.github.io/spdx-spec/v2.3/SPDX-license-expressions. It is taken from, in
this order: the reviewed rows of policy.toml, METADATA's License-Expression, its License, its classifiers
(https://packaging.python.org/specifications/core-metadata). What says nothing that policy.toml knows is an error.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import Any, Literal, cast

from license_expression import AND, OR, ExpressionError, Licensing

from ..errors import PolicyError, ToolchainError
from .inventory import Wheel, normalized

POLICY = Path(__file__).parent / "policy.toml"
REVIEW = "read the package's licence, then add it to toolchain/provenance/policy.toml with a reason"

Use = Literal["depend", "bundle"]
BOTH: frozenset[Use] = frozenset({"depend", "bundle"})
DEPEND: frozenset[Use] = frozenset({"depend"})


@dataclass(frozen=True)
class Reviewed:
    """A package that somebody looked into: its licence, what it may be used for if not all that the licence allows.

    `others`: patterns of its files that it took from others, which may be bundled.
    """

    licence: str
    reason: str
    use: frozenset[Use] | None = None
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class FilePattern:
    """Paths that belong to `package`, which may not be bundled, in any version of it."""

    pattern: str
    package: str


@dataclass(frozen=True)
class Licence:
    """A package's licence, where it was found, and what the package may be used for; `others` as in Reviewed."""

    package: str
    version: str
    expression: str
    source: str
    use: frozenset[Use]
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class Policy:
    """policy.toml. `licences`: use by licence; `words`: what METADATA says, to SPDX."""

    licences: Mapping[str, frozenset[Use]]
    words: Mapping[str, str]
    packages: Mapping[str, Reviewed]
    files: tuple[FilePattern, ...]

    def use(self, expression: str) -> frozenset[Use]:
        """What a licence allows: of `A AND B` what both do, of `A OR B` what one does. Raises PolicyError."""
        try:
            parsed = Licensing().parse(expression)
        except (ExpressionError, IndexError) as error:  # the parser's own, of `()`
            raise PolicyError(f"{expression!r} is not a licence expression: {error}", hint=REVIEW) from error
        if parsed is None:
            raise PolicyError("the licence is empty", hint=REVIEW)
        return self._use(parsed)

    def _use(self, parsed: Any) -> frozenset[Use]:
        if isinstance(parsed, (AND, OR)):
            parts = [self._use(part) for part in cast("Sequence[Any]", parsed.args)]
            join = frozenset[Use].intersection if isinstance(parsed, AND) else frozenset[Use].union
            return functools.reduce(join, parts)
        if str(parsed) not in self.licences:
            raise PolicyError(f"the policy does not mention the licence {parsed}", hint=REVIEW)
        return self.licences[str(parsed)]

    def licence(self, name: str, version: str, metadata: Message) -> Licence:
        """The licence of a package with that METADATA. Raises PolicyError if it cannot be told."""
        if reviewed := self.packages.get(normalized(name)):
            use = self.use(reviewed.licence)
            use &= reviewed.use or BOTH
            return Licence(name, version, reviewed.licence, "policy.toml", use, reviewed.others)
        expression, source = self._stated(name, version, metadata)
        try:
            return Licence(name, version, expression, source, self.use(expression))
        except PolicyError as error:
            raise PolicyError(f"{name} {version}: {source}: {error.args[0]}", hint=error.hint) from error

    def _stated(self, name: str, version: str, metadata: Message) -> tuple[str, str]:
        """The expression that METADATA states, and in which field."""
        if expression := metadata.get("License-Expression"):
            return str(expression), "License-Expression"  # not a string if the bytes are not ASCII
        said = " ".join(str(metadata.get("License", "")).split())
        if said in self.words or self._knows(said):
            return self.words.get(said, said), "License"
        classifiers = [str(row) for row in metadata.get_all("Classifier", []) if str(row).startswith("License ::")]
        found = {self.words.get(row, "") for row in classifiers} - {""}
        if len(found) == 1 and all(row in self.words for row in classifiers):
            return found.pop(), "classifier"
        stated = "; ".join(filter(None, [said[:60], *classifiers])) or "nothing"
        raise PolicyError(f"{name} {version}: its licence is unknown: METADATA says {stated}", hint=REVIEW)

    def _knows(self, expression: str) -> bool:
        try:
            self.use(expression)
        except PolicyError:  # words, not an expression: the classifiers may say it
            return False
        return True


def load_policy(path: Path = POLICY) -> Policy:
    """Raises PolicyError naming what is wrong in the file."""
    try:
        table = tomllib.loads(path.read_text())
        licences = {
            **dict.fromkeys(cast("list[str]", table["licences"]["depend"]), DEPEND),
            **dict.fromkeys(cast("list[str]", table["licences"]["bundle"]), BOTH),
        }
        packages = {
            name: Reviewed(
                row["licence"],
                row["reason"],
                frozenset(row["use"]) if "use" in row else None,
                tuple(row.get("others", ())),
            )
            for name, row in table["packages"].items()
        }
        words: dict[str, str] = table["words"]
        files = tuple(FilePattern(**row) for row in table["files"])
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise PolicyError(f"{path} is damaged: {type(error).__name__}: {error}") from error
    for name, row in packages.items():
        if not row.reason.strip() or (row.use is not None and not row.use <= BOTH):
            raise PolicyError(f"{path}: packages.{name}: it needs a reason, and `use` is depend or bundle")
    return Policy(licences, words, packages, files)


def licences(wheels: Mapping[str, Wheel], policy: Policy) -> dict[str, Licence]:
    """The licence of each package, by name. Raises PolicyError that names all those whose licence is unknown."""
    found: dict[str, Licence] = {}
    unknown: list[str] = []
    for name, wheel in wheels.items():
        try:
            metadata = cast("Message", wheel.installed.metadata) if wheel.installed else Message()
            found[name] = policy.licence(name, wheel.version, metadata)
        except PolicyError as error:
            unknown.append(str(error.args[0]) + ("" if wheel.installed else " (it is not installed here)"))
    if unknown:
        raise PolicyError("\n  ".join(["licences that need a review:", *unknown]), hint=REVIEW)
    if stale := sorted(set(policy.packages) - set(wheels)):
        raise PolicyError(
            f"policy.toml has packages that the lock does not have: {', '.join(stale)}", hint="remove them"
        )
    if absent := [n for n, row in found.items() if "bundle" not in row.use and wheels[n].installed is None]:
        raise ToolchainError(f"not installed, so their files are unknown: {', '.join(absent)}")
    return found
