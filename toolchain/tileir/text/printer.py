"""A module of the dialect to Tile IR text: the disassembler's spelling, inside `cuda_tile.module`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest

from xdsl.dialects.builtin import DenseArrayBase, UnitAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import OptionalDef, VarOperandDef

from ..dialect import attrs, debug
from ..dialect import types as t
from ..dialect.base import TileOp
from ..dialect.control import EntryOp, GlobalOp, ModuleOp
from ..numbers import spell_number
from .formats import FORMATS, KEYWORDS, default
from .names import quote, spell_name
from .places import Places
from .spelling import spell_attribute, spell_dense, spell_hints, spell_predicate

INDENT = "  "


def print_module(module: ModuleOp, *, locations: bool = False) -> str:
    """The text of a verified module: `parse` reads it back to an equal one. Values keep the names that are known.

    With `locations` each operation is followed by what its own text said of its origin, `loc(...)`.
    """
    return Printer(Places() if locations else None).module(module)


def print_modules(modules: Sequence[ModuleOp], *, locations: bool = False) -> str:
    """The text of several modules, MLIR's own `module` around them. Of one, `print_module`."""
    if len(modules) == 1:
        return print_module(modules[0], locations=locations)
    printer = Printer(Places() if locations else None)
    printer.line("module {")
    printer.depth += 1
    for module in modules:
        printer.one(module)
    printer.depth -= 1
    printer.line("}")
    return printer.text()


def _said(value: Attribute | None) -> str:
    return f" {spell_attribute(value)}" if isinstance(value, attrs.DictAttr) and value.data else ""


class Printer:
    """Collects the printed lines, and keeps the names of the values of the current entry."""

    def __init__(self, places: Places | None = None) -> None:
        self.places = places
        self.lines: list[str] = []
        self.names: dict[SSAValue, str] = {}
        self.taken: set[str] = set()
        self.following: dict[str, int] = {}  # the next number to try after a name that is taken
        self.depth = 0

    def line(self, text: str) -> None:
        self.lines.append(INDENT * self.depth + text)

    def text(self) -> str:
        """All lines, after the debug scopes that they name."""
        return "\n".join([*(self.places.definitions if self.places else ()), *self.lines]) + "\n"

    def origin(self, op: Operation) -> str:
        """` loc(...)` behind an operation, or nothing."""
        place = None if self.places is None else debug.attached(op)
        return "" if place is None or self.places is None else f" loc({self.places.spell(place)})"

    def module(self, module: ModuleOp) -> str:
        self.one(module)
        return self.text()

    def one(self, module: ModuleOp) -> None:
        given = {"producer": quote(module.producer.data)} if module.producer is not None else {}
        given |= {name: value.data for name, value in module.attributes.items() if isinstance(value, attrs.StrAttr)}
        listed = ", ".join(
            f"{spell_name(name)} = {value}" if value else spell_name(name) for name, value in given.items()
        )
        attributes = f" attributes {{{listed}}}" if given else ""
        self.line(f"cuda_tile.module @{spell_name(module.sym_name.data)}{attributes} {{")
        self.depth += 1
        for op in module.body.block.ops:
            if isinstance(op, GlobalOp):
                self._global(op)
            elif isinstance(op, EntryOp):
                self._entry(op)
        self.depth -= 1
        self.line(f"}}{self.origin(module)}")

    def _global(self, op: GlobalOp) -> None:
        words = [word for word, flag in (("private", op.private), ("constant", op.constant)) if flag is not None]
        alignment = [f"alignment = {op.alignment.data}"] if op.alignment.data else []
        words = ["global", *words, f"@{spell_name(op.sym_name.data)}", *alignment]
        self.line(f"{' '.join(words)} {spell_dense(op.value)} : {t.spell(op.value.type)}{self.origin(op)}")

    def _entry(self, op: EntryOp) -> None:
        self.names, self.taken, self.following = {}, set(), {}
        said = () if op.arg_attrs is None else op.arg_attrs.data
        arguments = ", ".join(
            f"{self.define(a, 'arg')}: {t.spell(a.type)}{_said(one)}"
            for a, one in zip_longest(op.body.block.args, said)
        )
        hints = "" if op.optimization_hints is None else f" optimization_hints={spell_hints(op.optimization_hints)}"
        self.line(f"entry @{spell_name(op.symbol)}({arguments}){hints} {{")
        self.block(op.body.block)
        self.line(f"}}{self.origin(op)}")

    # Values

    def define(self, value: SSAValue, fallback: str = "") -> str:
        """Gives a value a unique name: its own with a number if that is taken, or `fallback` with a number."""
        stem = value.name_hint or fallback
        number = self.following.get(stem, 0)
        name = stem
        while not name or name in self.taken:
            name = f"{stem}_{number}" if value.name_hint else f"{stem}{number}"
            number += 1
        self.following[stem] = number
        self.taken.add(name)
        self.names[value] = f"%{name}"
        return f"%{name}"

    def use(self, values: Iterable[SSAValue]) -> str:
        return ", ".join(self.names[value] for value in values)

    def types(self, values: Iterable[SSAValue]) -> str:
        return ", ".join(t.spell(value.type) for value in values)

    # Operations

    def block(self, block: Block, *, implied: str | None = None) -> None:
        self.depth += 1
        for op in block.ops:
            if op.name != f"cuda_tile.{implied}" or op.operands or self.origin(op):
                self._operation(op)
        self.depth -= 1

    def _operation(self, op: Operation) -> None:
        assert isinstance(op, TileOp)
        name = op.name.removeprefix("cuda_tile.")
        if name in _STRUCTURED:
            _STRUCTURED[name](self, op, name)
            return
        body = self._regular(op, name) if name in FORMATS else _irregular(self, op, name)
        self.line(f"{self.results(op)}{name} {body}".rstrip() + self.origin(op))

    def results(self, op: Operation) -> str:
        return f"{', '.join(self.define(r) for r in op.results)} = " if op.results else ""

    def groups(self, op: TileOp) -> dict[str, list[SSAValue]]:
        """The operands of each group by name."""
        definitions = op.get_irdl_definition().operands
        segments = op.properties.get("operandSegmentSizes")
        if isinstance(segments, DenseArrayBase):
            sizes = [int(size) for size in segments.get_values()]
        else:
            many = [isinstance(d, VarOperandDef) and not isinstance(d, OptionalDef) for _, d in definitions]
            sizes = [len(op.operands) - len(many) + 1 if variadic else 1 for variadic in many]
        found: dict[str, list[SSAValue]] = {}
        at = 0
        for (name, _), size in zip(definitions, sizes, strict=True):
            found[name] = list(op.operands[at : at + size])
            at += size
        return found

    def _regular(self, op: TileOp, name: str) -> str:
        groups = self.groups(op)
        results = dict(zip((n for n, _ in op.get_irdl_definition().results), op.results, strict=False))
        out: list[str] = []
        for word in FORMATS[name].split():
            if word == "flags":
                units = sorted(n.rstrip("_") for n, v in op.properties.items() if isinstance(v, UnitAttr))
                out += [f" {unit}" for unit in units]
            elif word[0] == "=":
                out.append(f" {_enum(op, word[1:])}")
            elif word[0] == "~":
                if op.properties[word[1:]] != default(name, word[1:]):
                    out.append(f" {KEYWORDS[word[1:]]}<{_enum(op, word[1:])}>")
            elif word[0] == ".":
                value = op.properties[word[1:]]
                assert isinstance(value, attrs.IntAttr)
                out.append(f" {word[1:]} = {value.data}")
            elif word[0] == "<":
                role = word[1:-1].split(",")[0]
                out.append(f" {t.spell((groups[role][0] if role in groups else results[role]).type)}")
            elif word in groups:
                out.append(f" {self.use(groups[word])}")
            else:
                out.append(word if word in (",", "[", "]") else f" {word}")
        return "".join(out).strip().replace("[ ", "[")

    def region(self, head: str, region: Region, *, implied: str | None = None) -> None:
        self.line(f"{head} {{")
        self.block(region.block, implied=implied)


def _enum(op: Operation, name: str) -> str:
    value = op.properties[name]
    return str(getattr(value, "data", value))


def _irregular(p: Printer, op: TileOp, name: str) -> str:
    groups = p.groups(op)
    properties = op.properties
    match name:
        case "constant":
            value = properties["value"]
            assert isinstance(value, attrs.DenseAttr)
            return f"{spell_dense(value)} : {t.spell(value.type)}"
        case "permute":
            order = properties["permutation"]
            assert isinstance(order, attrs.IntsAttr)
            return f"{p.use(op.operands)} {list(order.data)} : {p.types(op.operands)} -> {p.types(op.results)}"
        case "assume":
            return f"{spell_predicate(properties['predicate'])}, {p.use(op.operands)} : {p.types(op.operands)}"
        case "assert":
            return f"{p.use(op.operands)}, {quote(_enum(op, 'message'))} : {p.types(op.operands)}"
        case "get_global":
            return f"@{spell_name(_enum(op, 'global_name'))} : {p.types(op.results)}"
        case "make_tensor_view":
            return _tensor_view(p, op, groups)
        case "print_tko":
            arguments = groups["args"]
            types = f" : {p.types(arguments)}" if arguments else ""
            listed = "".join(f", {p.names[a]}" for a in arguments)
            return f"{quote(_enum(op, 'str'))}{listed}{_token(p, groups)}{types} -> token"
        case "memory_fence_alias_tko":
            return p.use(op.operands)
        case "gdc_launch_dependents_tko" | "gdc_wait_tko":
            return f"{_token(p, groups)} -> token".strip()
        case "return" | "break" | "continue" | "yield":
            return f"{p.use(op.operands)} : {p.types(op.operands)}" if op.operands else ""
        case _:
            return _access(p, op, name, groups)


def _tensor_view(p: Printer, op: TileOp, groups: dict[str, list[SSAValue]]) -> str:
    kind = op.results[0].type
    assert isinstance(kind, t.TensorViewType)

    def sizes(static: Sequence[int], dynamic: Sequence[SSAValue]) -> str:
        values = iter(dynamic)
        return ", ".join(p.names[next(values)] if size == t.DYNAMIC else str(size) for size in static)

    shape = sizes(kind.shape, groups["dynamicShape"])
    strides = sizes(kind.strides, groups["dynamicStrides"])
    dynamic = [*groups["dynamicShape"], *groups["dynamicStrides"]]
    typed = [*(groups["base"] if kind.ptr_attr is not None else ()), *dynamic[:1]]
    types = f"{p.types(typed)} -> {t.spell(kind)}" if typed else t.spell(kind)
    return f"{p.use(groups['base'])}, shape = [{shape}], strides = [{strides}] : {types}"


def _element(value: SSAValue) -> Attribute | None:
    return value.type.element_type if isinstance(value.type, t.TileType) else None


def _token(p: Printer, groups: dict[str, list[SSAValue]]) -> str:
    return f" token = {p.names[groups['token'][0]]}" if groups["token"] else ""


def _access(p: Printer, op: TileOp, name: str, groups: dict[str, list[SSAValue]]) -> str:
    """Loads, stores and atomics."""
    words = [_enum(op, "memory_ordering_semantics")]
    if "memory_scope" in op.properties:
        words.append(_enum(op, "memory_scope"))
    view = "view" in groups
    index = f"[{p.use(groups['index'])}]" if view else ""
    mode = f", {_enum(op, 'mode')}" if "mode" in op.properties else ""
    match name:
        case "load_view_tko":
            operands = f"{p.use(groups['view'])}{index}"
            typed = groups["view"]
        case "store_view_tko":
            operands = f"{p.use(groups['tile'])}, {p.use(groups['view'])}{index}"
            typed = [*groups["tile"], *groups["view"]]
        case "multimem_load_reduce_view_tko":
            operands = f"{p.use(groups['view'])}{index}"
            typed = groups["view"]
        case "multimem_reduce_view_tko" | "multimem_store_view_tko":
            typed = [*groups["view"], *groups["tile"]]
            operands = f"{p.use(typed)}{index}"
        case "atomic_red_view_tko":
            operands = f"{p.use(groups['view'])}{index}{mode}, {p.use(groups['value'])}"
            typed = [*groups["value"], *groups["view"]]
        case "atomic_cas_tko":
            operands = p.use([*groups["pointers"], *groups["cmp"], *groups["val"], *groups["mask"]])
            typed = [*groups["pointers"], *groups["cmp"], *groups["mask"]]
        case "load_ptr_tko" if not groups["mask"] and _element(op.results[0]) == t.i1:
            typed = groups["source"]  # a padding value would be read as the mask, and has no effect
            operands = p.use(typed)
        case _:
            typed = [value for group, values in groups.items() if group != "token" for value in values]
            operands = f"{p.names[typed[0]]}{mode}{''.join(f', {p.names[v]}' for v in typed[1:])}"
    inbounds = op.properties.get("inbounds")
    flags = inbounds.data if isinstance(inbounds, attrs.BoolsAttr) else ()
    inside = f" inbounds = [{', '.join(str(flag).lower() for flag in flags)}]" if any(flags) else ""
    hints = op.properties.get("optimization_hints")
    spelled = f" optimization_hints = {spell_hints(hints)}" if isinstance(hints, attrs.HintsAttr) else ""
    types = [t.spell(value.type) for value in typed]
    if view:
        kinds = [t.spell(value.type) for value in groups["index"]]
        types += kinds if len(set(kinds)) > 1 else kinds[:1]
    if name.startswith("multimem_"):
        inside += _reduction(op)
        types += [t.spell(value.type) for value in groups["token"]]
    head = f"{' '.join(words)} {operands}{_token(p, groups)}{spelled}{inside}"
    return f"{head} : {', '.join(types)} -> {', '.join(t.spell(r.type) for r in op.results)}"


def _reduction(op: TileOp) -> str:
    found = op.properties.get("reduction")
    if not isinstance(found, attrs.MultimemReductionAttr) or found.data == attrs.MultimemReduction.ADD:
        return ""
    return f" attributes {{reduction = #{found.name}<{found.data}>}}"


# Operations with regions


def _carried(p: Printer, arguments: Sequence[SSAValue], initial: Sequence[SSAValue]) -> str:
    pairs = (f"{p.define(a, 'carried')} = {p.names[v]}" for a, v in zip(arguments, initial, strict=True))
    return f" iter_values({', '.join(pairs)})" if initial else ""


def _for(p: Printer, op: TileOp, name: str) -> None:
    low, high, step, *initial = op.operands
    block = op.regions[0].block
    results = p.results(op)
    unsigned = " unsigned" if "unsignedCmp" in op.properties else ""
    index = p.define(block.args[0], "i")
    head = f"{results}{name}{unsigned} {index} in ({p.use([low])} to {p.use([high])}, step {p.use([step])})"
    types = f" -> ({p.types(op.results)})" if op.results else ""
    p.region(
        f"{head} : {t.spell(low.type)}{_carried(p, block.args[1:], initial)}{types}", op.regions[0], implied="continue"
    )
    p.line(f"}}{p.origin(op)}")


def _loop(p: Printer, op: TileOp, name: str) -> None:
    results = p.results(op)
    carried = _carried(p, op.regions[0].block.args, op.operands)
    types = f" : {p.types(op.operands)}" if op.operands else ""
    types += f" {'->' if op.operands else ':'} {p.types(op.results)}" if op.results else ""
    p.region(f"{results}{name}{carried}{types}", op.regions[0], implied="continue")
    p.line(f"}}{p.origin(op)}")


def _if(p: Printer, op: TileOp, name: str) -> None:
    results = p.results(op)
    types = f" -> ({p.types(op.results)})" if op.results else ""
    p.region(f"{results}{name} {p.use(op.operands)}{types}", op.regions[0], implied="yield")
    if op.regions[1].blocks:
        p.region("} else", op.regions[1], implied="yield")
    p.line(f"}}{p.origin(op)}")


def _fold(p: Printer, op: TileOp, name: str) -> None:
    results = p.results(op)
    identities = op.properties["identities"]
    dim = op.properties["dim"]
    assert isinstance(identities, attrs.AttrsAttr)
    assert isinstance(dim, attrs.IntAttr)
    numbers = [
        f"{spell_number(n.bits, n.type)} : {t.spell(n.type)}"
        for n in identities.data
        if isinstance(n, attrs.NumberAttr)
    ]
    reverse = op.properties.get("reverse")
    order = f" reverse={str(reverse.data).lower()}" if isinstance(reverse, attrs.BoolAttr) else ""
    head = f"{results}{name} {p.use(op.operands)} dim={dim.data}{order} identities=[{', '.join(numbers)}]"
    p.line(f"{head} : {p.types(op.operands)} -> {p.types(op.results)}")
    arguments = ", ".join(f"{p.define(a, 'arg')}: {t.spell(a.type)}" for a in op.regions[0].block.args)
    p.region(f"({arguments})", op.regions[0])
    p.line(f"}}{p.origin(op)}")


_STRUCTURED = {"for": _for, "loop": _loop, "if": _if, "reduce": _fold, "scan": _fold}
