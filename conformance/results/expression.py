"""Expressions over names, as pytest's -k has them: `layernorm and not (f32 or f16)`. A word is true for a name that it
is a part of, upper or lower case."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

from toolchain.errors import UsageError

Test = Callable[[str], bool]
_TOKEN = re.compile(r"\s*(?:(?P<mark>[()])|(?P<word>[^\s()]+))")
KEYWORDS = ("and", "or", "not")
DEEPEST = 64  # of parentheses and `not`s inside one another


@dataclass(frozen=True)
class Expression:
    """Words with `and`, `or`, `not` and parentheses; `not` binds the closest, then `and`. An empty text is true for
    every name. Raises UsageError, where it is made, for anything else."""

    text: str = ""

    def __post_init__(self) -> None:
        _ = self.test

    def __call__(self, name: str) -> bool:
        return self.test(name.lower())

    @cached_property
    def test(self) -> Test:
        if not self.text.strip():
            return lambda _: True
        return _Parser(self.text).whole()

    def __getstate__(self) -> dict[str, str]:
        return {"text": self.text}  # a process that gets it parses it again: functions cannot be sent


class _Parser:
    def __init__(self, text: str) -> None:
        self._text, self._at, self._depth = text, 0, 0

    def whole(self) -> Test:
        found = self._or()
        if (left := self._next()) is not None:
            self._fail(f"expected 'and' or 'or' before {left!r}")
        return found

    def _or(self) -> Test:
        tests = [self._and()]
        while self._accept("or"):
            tests.append(self._and())
        return tests[0] if len(tests) == 1 else lambda name: any(test(name) for test in tests)

    def _and(self) -> Test:
        tests = [self._not()]
        while self._accept("and"):
            tests.append(self._not())
        return tests[0] if len(tests) == 1 else lambda name: all(test(name) for test in tests)

    def _not(self) -> Test:
        self._depth += 1
        if self._depth > DEEPEST:
            self._fail(f"more than {DEEPEST} inside one another")
        found = self._one()
        self._depth -= 1
        return found

    def _one(self) -> Test:
        if self._accept("not"):
            inner = self._not()
            return lambda name: not inner(name)
        if self._accept("("):
            inner = self._or()
            if not self._accept(")"):
                self._fail("expected ')'")
            return inner
        word = self._next()
        if word is None or word in (*KEYWORDS, ")"):
            self._fail(f"expected a word, found {'the end' if word is None else repr(word)}")
        self._accept(word)
        part = word.lower()
        return lambda name: part in name

    def _next(self) -> str | None:
        found = _TOKEN.match(self._text, self._at)
        return None if found is None else found["mark"] or found["word"]

    def _accept(self, token: str) -> bool:
        found = _TOKEN.match(self._text, self._at)
        if found is None or token != (found["mark"] or found["word"]):
            return False
        self._at = found.end()
        return True

    def _fail(self, why: str) -> NoReturn:
        raise UsageError(
            f"-k {self._text!r}: {why}", hint="words with and, or, not and parentheses: 'gelu and not (f32 or py)'"
        )
