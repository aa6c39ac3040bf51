"""The attributes of operations and parameters as Tile IR text."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, TypeAttribute

from ..dialect import attrs
from ..dialect import types as t
from ..numbers import elements_of, spell_number
from .names import quote, spell_name


def spell_hints(hints: attrs.HintsAttr) -> str:
    def value(hint: int | bool) -> str:
        return str(hint).lower() if isinstance(hint, bool) else str(hint)

    def listed(pairs: Sequence[tuple[str, int | bool]]) -> str:
        return ", ".join(f"{spell_name(key)} = {value(hint)}" for key, hint in pairs)

    return f"<{', '.join(f'{spell_name(name)} = {{{listed(pairs)}}}' for name, pairs in hints.data)}>"


def spell_dense(value: attrs.DenseAttr) -> str:
    kind = value.type.element_type
    words = [spell_number(bits, kind) for bits in elements_of(value)]

    def nest(shape: Sequence[int], words: Sequence[str]) -> str:
        if not shape:
            return words[0]
        step = len(words) // shape[0]
        return f"[{', '.join(nest(shape[1:], words[i : i + step]) for i in range(0, len(words), step))}]"

    return f"<{t.spell(kind)}: {words[0] if value.is_splat else nest(value.type.shape, words)}>"


def spell_predicate(predicate: Attribute) -> str:
    match predicate:
        case attrs.DivByAttr():
            rest = "" if predicate.every is None else f", every {predicate.every} along {predicate.along}"
            return f"div_by<{predicate.divisor}{rest}>"
        case attrs.BoundedAttr():
            low, high = ("?" if v is None else v for v in (predicate.lb, predicate.ub))
            return f"bounded<{low}, {high}>"
        case attrs.SameElementsAttr():
            return f"same_elements<{list(predicate.data)}>"
        case _:
            raise TypeError(f"{type(predicate).__name__} is not a predicate of assume")


def spell_attribute(value: Attribute) -> str:
    """What is said of a parameter, as MLIR spells it."""
    match value:
        case attrs.BoolAttr():
            return str(value.data).lower()
        case attrs.StrAttr():
            return quote(value.data)
        case attrs.NumberAttr():
            return f"{spell_number(value.bits, value.type)} : {t.spell(value.type)}"
        case attrs.AttrsAttr():
            return f"[{', '.join(map(spell_attribute, value.data))}]"
        case attrs.DictAttr():
            return f"{{{', '.join(f'{spell_name(name)} = {spell_attribute(one)}' for name, one in value.data)}}}"
        case attrs.HintsAttr():
            return f"#{value.name}{spell_hints(value)}"
        case TypeAttribute():
            return t.spell(value) if value in t.SCALARS else f"!cuda_tile.{t.spell(value)}"
        case _:
            return f"#cuda_tile.{spell_predicate(value)}"
