"""Mutations of source lines: one token changed so that the line means something else."""

from __future__ import annotations

import ast
import io
import keyword
import random
import re
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

# Python tokens, and the words of kernels as text. What is not here is left alone.
PYTHON = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+", "*": "+", "//": "*",
    "/": "*", "%": "*", "and": "or", "or": "and", "not": "", "True": "False", "False": "True",
    "break": "continue", "min": "max", "max": "min", "any": "all", "all": "any", "&": "|", "+=": "-=", "-=": "+=",
    "is": "is not",
}  # fmt: skip
MLIR = {
    "addf": "subf", "subf": "addf", "mulf": "addf", "divf": "mulf", "maxf": "minf", "minf": "maxf", "addi": "subi",
    "subi": "addi", "muli": "addi", "maxi": "mini", "mini": "maxi", "less_than": "less_than_or_equal",
    "greater_than": "greater_than_or_equal", "equal": "not_equal", "rsqrt": "sqrt", "andi": "ori",
}  # fmt: skip
WORD = re.compile(r"(?<![\w.%@!-])(?:[a-z_]+|\d+)(?![\w.])")
STATED = {"frozen", "strict", "check", "text", "slots"}  # arguments that change nothing where no other code is wrong
NO_OPERATOR = {"(", "[", "{", ",", "=", ":", "->", "lambda"}  # before `*` and `-` that stand for something else


@dataclass(frozen=True)
class Mutation:
    """One token of a line. `path`: relative to the checkout. `line`: from 1. `start`, `end`: columns of the token."""

    path: str
    line: int
    start: int
    end: int
    before: str
    after: str

    def apply(self, text: str) -> str:
        lines = text.splitlines(keepends=True)
        row = lines[self.line - 1]
        lines[self.line - 1] = row[: self.start] + self.after + row[self.end :]
        return "".join(lines)

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.start + 1}: `{self.before}` becomes `{self.after or 'nothing'}`"


def mutations(path: str, text: str) -> list[Mutation]:
    """All of a file, those that leave it no Python left out."""
    if path.endswith(".mlir"):
        return list(_mlir(path, text))
    return [each for each in _python(path, text) if _parses(each.apply(text))]


def chosen(root: Path, paths: Sequence[str], count: int, seed: int) -> list[Mutation]:
    """So many lines, drawn from all that have a mutation, each with one of its own."""
    draw = random.Random(seed)
    lines: dict[tuple[str, int], list[Mutation]] = {}
    for path in sorted(paths):
        text = (root / path).read_text()
        for each in _mlir(path, text) if path.endswith(".mlir") else _python(path, text):
            lines.setdefault((path, each.line), []).append(each)
    made: list[Mutation] = []
    for place in draw.sample(sorted(lines), len(lines)):
        if len(made) == count:
            break
        each = draw.choice(lines[place])
        if not place[0].endswith(".py") or _parses(each.apply((root / place[0]).read_text())):
            made.append(each)
    return made


def _python(path: str, text: str) -> Iterator[Mutation]:
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        return
    for word, before, token, after in zip(tokens, tokens[1:], tokens[2:], tokens[3:], strict=False):
        if before.string == "=" and word.string in STATED:
            continue
        changed = _other(before, token, after)
        if changed is not None:
            (line, start), (_, end) = token.start, token.end
            yield Mutation(path, line, start, end, token.string, changed)


def _other(before: tokenize.TokenInfo, token: tokenize.TokenInfo, after: tokenize.TokenInfo) -> str | None:
    """What a token becomes; None to leave it."""
    if token.type == tokenize.NUMBER:
        return str(int(token.string) + 1) if token.string.isdecimal() else None
    if token.string not in PYTHON or before.string == "." or after.string == "=":
        return None
    starts = before.string in NO_OPERATOR or before.type in (tokenize.NEWLINE, tokenize.NL, tokenize.INDENT)
    if token.string in ("*", "+", "/") and (starts or after.string in (",", ")") or keyword.iskeyword(before.string)):
        return None
    if (before.string, token.string) == ("is", "not") or (token.string, after.string) in (("not", "in"), ("is", "not")):
        return None
    if token.string in ("min", "max", "any", "all") and after.string != "(":
        return None
    return PYTHON[token.string]


def _mlir(path: str, text: str) -> Iterator[Mutation]:
    for number, line in enumerate(text.splitlines(), 1):
        code = line.partition("//")[0]
        for match in WORD.finditer(code):
            word = match[0]
            after = str(int(word) + 1) if word.isdecimal() else MLIR.get(word)
            if after is not None:
                yield Mutation(path, number, match.start(), match.end(), word, after)


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True
