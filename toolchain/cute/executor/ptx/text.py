"""PTX text as instructions: directives, labels, scopes and operands, each with its line.

Source of the grammar: PTX ISA 9.0, "Syntax" and "State Spaces, Types, and Variables".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from ....errors import SourceError

BITS = {"pred": 1, "b8": 8, "u8": 8, "s8": 8, "b16": 16, "u16": 16, "s16": 16, "f16": 16, "bf16": 16, "b32": 32,
        "u32": 32, "s32": 32, "f32": 32, "b64": 64, "u64": 64, "s64": 64, "f64": 64}  # fmt: skip
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_SIGN = re.compile(r"[;{}()\[\]\n]")
_WHOLE_LINE = re.compile(r"\.(version|target|address_size|file|loc|section)\b")  # directives that end with their line
_LABEL = re.compile(r"([$%\w]+)\s*:(?!:)")
_GUARD = re.compile(r"@(!?)([%\w]+)\s+")
_REGISTERS = re.compile(r"\.reg\s+\.(\w+)\s+(.*)", re.DOTALL)
_VARIABLE = re.compile(
    r"(?:\.(?:extern|visible|weak)\s+)?\.(?P<space>shared|local|global|const)\s+(?:\.align\s+(?P<align>\d+)\s+)?"
    r"\.(?P<type>\w+)\s+(?P<name>[$\w]+)\s*(?P<size>\[\s*\d*\s*\])?"
)
_PARAM = re.compile(
    r"\.param\s+(?:\.align\s+(?P<align>\d+)\s+)?\.(?P<type>\w+)(?P<pointer>\s+\.ptr[^,]*?)?\s+(?P<name>[$\w]+)"
    r"(?:\[(?P<size>\d+)\])?$"
)
_ENTRY = re.compile(r"(?:\.(?:visible|weak)\s+)?\.entry\s+([$\w]+)\s*\((.*?)\)(.*)", re.DOTALL)


@dataclass(frozen=True)
class Operand:
    """`kind`: register, number (`value`: its bits, or a Python int), special (a register of the hardware), symbol or
    `_`; memory, vector and pair have `parts`; `offset`: of memory, in bytes."""

    kind: str
    name: str = ""
    value: int = 0
    is_float: bool = False
    parts: tuple[Operand, ...] = ()
    offset: int = 0


@dataclass(frozen=True)
class Instruction:
    """`opcode`: with its suffixes. `guard`: a predicate; `negated`: the instruction is done where it is false. `label`:
    the place has a name, and no instruction."""

    line: int
    opcode: str
    operands: tuple[Operand, ...] = ()
    guard: Operand | None = None
    negated: bool = False
    label: str = ""

    @property
    def words(self) -> list[str]:
        return self.opcode.split(".")


@dataclass(frozen=True)
class Variable:
    """`size`: bytes; 0 for dynamic shared memory."""

    space: str
    name: str
    align: int
    size: int


@dataclass(frozen=True)
class Parameter:
    """`pointer`: an address; `size`: bytes of an array, or 0."""

    name: str
    type: str
    pointer: bool = False
    size: int = 0


@dataclass
class Entry:
    """A kernel. `registers`: the type of each, by a name that is its own."""

    name: str
    line: int
    parameters: list[Parameter] = field(default_factory=list[Parameter])
    dims: tuple[int, int, int] | None = None
    cluster: tuple[int, int, int] | None = None
    variables: list[Variable] = field(default_factory=list[Variable])
    registers: dict[str, str] = field(default_factory=dict[str, str])
    body: list[Instruction] = field(default_factory=list[Instruction])


@dataclass
class PtxModule:
    """What a text says."""

    file: str
    variables: list[Variable] = field(default_factory=list[Variable])
    entries: dict[str, Entry] = field(default_factory=dict[str, Entry])


def is_ptx(text: str) -> bool:
    """True for PTX, which begins with its version."""
    return _COMMENT.sub("", text).lstrip().startswith(".version")


def parse(text: str, file: str = "<kernel>.ptx") -> PtxModule:
    """Raises SourceError with the line of what is no PTX that is known here."""
    return _Parser(PtxModule(file)).whole(_COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text))


@dataclass
class _Parser:
    made: PtxModule
    entry: Entry | None = None
    scopes: list[dict[str, str]] = field(default_factory=list[dict[str, str]])

    def fail(self, line: int, message: str) -> SourceError:
        return SourceError(f"{self.made.file}:{line}: {message}")

    def whole(self, text: str) -> PtxModule:
        for line, kind, words in _statements(text):
            if kind == "{":
                self.scopes.append({})
            elif kind == "}":
                if not self.scopes:
                    raise self.fail(line, "a brace that nothing opens")
                self.scopes.pop()
                self.entry = self.entry if self.scopes else None
            elif self.entry is not None and self.scopes:
                self.in_body(line, words, self.entry)
            else:
                self.at_top(line, words)
        if self.scopes:
            raise self.fail(text.count("\n") + 1, "the text ends within braces")
        return self.made

    def at_top(self, line: int, words: str) -> None:
        if (head := _ENTRY.fullmatch(words)) is not None:
            self.entry = Entry(head[1], line, dims=_three(head[3], "reqntid") or _three(head[3], "maxntid"),
                               cluster=_three(head[3], "reqnctapercluster"))  # fmt: skip
            for part in filter(None, (part.strip() for part in head[2].split(","))):
                if (found := _PARAM.match(" ".join(part.split()))) is None:
                    raise self.fail(line, f"no parameter: {part}")
                size = int(found["size"] or 0)
                self.entry.parameters.append(Parameter(found["name"], found["type"], bool(found["pointer"]), size))
            self.made.entries[head[1]] = self.entry
        elif (found := _VARIABLE.match(words)) is not None:
            self.made.variables.append(_variable(found))
        elif not words.startswith((".version", ".target", ".address_size", ".file", ".extern .func", ".section")):
            raise self.fail(line, f"the executor does not know {words.split('(')[0]!r}")

    def in_body(self, line: int, words: str, entry: Entry) -> None:
        if (found := _REGISTERS.fullmatch(words)) is not None:
            for name in (name.strip() for name in found[2].split(",")):
                self.declare(line, name, found[1], entry)
            return
        if (found := _VARIABLE.match(words)) is not None:
            entry.variables.append(_variable(found))
            return
        if words.startswith((".loc", ".pragma")):
            return
        while (label := _LABEL.match(words)) is not None:
            entry.body.append(Instruction(line, "", label=label[1]))
            words = words[label.end() :].strip()
        if not words:
            return
        guard, negated = None, False
        if (found := _GUARD.match(words)) is not None:
            guard, negated, words = self.operand(line, found[2]), bool(found[1]), words[found.end() :]
        opcode, _, rest = re.sub(r"\s+", " ", words).partition(" ")
        if opcode.startswith("."):
            raise self.fail(line, f"the executor does not know the directive {opcode}")
        operands = tuple(self.operand(line, part) for part in _split(rest))
        entry.body.append(Instruction(line, opcode, operands, guard, negated))

    def declare(self, line: int, name: str, type_: str, entry: Entry) -> None:
        if type_ not in BITS:
            raise self.fail(line, f"the executor has no registers of type .{type_}")
        many = re.fullmatch(r"([%\w$]+)<(\d+)>", name)
        for each in [f"{many[1]}{i}" for i in range(int(many[2]))] if many else [name]:
            own = each if each not in entry.registers else f"{each}'{len(entry.registers)}"
            entry.registers[own] = type_
            self.scopes[-1][each] = own

    def operand(self, line: int, text: str) -> Operand:
        text = text.strip()
        if text[:1] in "[{":
            inner = _split(text[1:-1])
            if text[-1] != {"[": "]", "{": "}"}[text[0]]:
                raise self.fail(line, f"no operand: {text}")
            if text[0] == "{":
                return Operand("vector", parts=tuple(self.operand(line, part) for part in inner))
            found = re.fullmatch(r"([^+-]+?)\s*(?:([+-])\s*([\w-]+))?", inner[0].strip() if inner else "")
            if found is None:
                raise self.fail(line, f"no address: {text}")
            base, sign, offset = found.groups()
            moved = int(offset, 0) * (-1 if sign == "-" else 1) if offset else 0
            parts = tuple(self.operand(line, part) for part in (base, *inner[1:]))
            return Operand("memory", parts=parts, offset=moved)
        if "|" in text:
            return Operand("pair", parts=tuple(self.operand(line, part) for part in text.split("|")))
        for scope in reversed(self.scopes):
            if text in scope:
                return Operand("register", scope[text])
        if (bits := re.fullmatch(r"0[fFdD]([0-9a-fA-F]+)", text)) is not None:
            return Operand("number", value=int(bits[1], 16), is_float=True)
        if re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|\d+)U?", text):
            return Operand("number", value=int(text.rstrip("U"), 0))
        if re.fullmatch(r"%[\w.]+", text):
            return Operand("special", text[1:])
        if text == "_" or re.fullmatch(r"[$\w]+", text):
            return Operand("_" if text == "_" else "symbol", text)
        raise self.fail(line, f"no operand: {text!r}")


def _statements(text: str) -> Iterator[tuple[int, str, str]]:
    """Each statement with its line: what ends in `;`, a head before `{`, and the braces of scopes."""
    begin, depth, line, said_at = 0, 0, 1, 1  # said_at: the line of the statement's first word
    for found in _SIGN.finditer(text):
        sign, at = found[0], found.start()
        said = text[begin:at].strip()
        if sign == "\n":
            line += 1
            if _WHOLE_LINE.match(said):
                yield said_at, "", said
                begin, said = at, ""
            said_at = said_at if said else line
            continue
        head = not said or ".entry" in said or ".func" in said or said.endswith(":")
        if sign in "{}" and depth == 0 and head:
            if said:
                yield said_at, "", said
            yield line, sign, ""
            begin, said_at = at + 1, line
        elif sign in "{[(":
            depth += 1
        elif sign in "}])":
            depth -= 1
        elif sign == ";":
            yield said_at, "", said
            begin, said_at = at + 1, line
    if text[begin:].strip():
        yield said_at, "", text[begin:].strip()


def _split(text: str) -> list[str]:
    """At the commas that stand in no brackets."""
    parts, depth, begin = list[str](), 0, 0
    for at, sign in enumerate(text):
        depth += (sign in "[{(") - (sign in "]})")
        if sign == "," and depth == 0:
            parts.append(text[begin:at])
            begin = at + 1
    return [*parts, text[begin:]] if text.strip() else []


def _variable(found: re.Match[str]) -> Variable:
    count = re.sub(r"[\[\]\s]", "", found["size"] or "1")
    size = int(count or 0) * BITS.get(found["type"], 8) // 8
    return Variable(found["space"], found["name"], int(found["align"] or 1), size)


def _three(text: str, word: str) -> tuple[int, int, int] | None:
    found = re.search(rf"\.{word}\s+([\d,\s]+)", text)
    if found is None:
        return None
    x, y, z = [*(int(n) for n in found[1].split(",")), 1, 1][:3]
    return x, y, z
