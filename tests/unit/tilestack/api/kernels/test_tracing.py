"""Tuples among the arguments of a function in cuTile Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilestack.api.kernels.tracing import Arguments, is_constant


@dataclass
class Mark:
    """A leaf's annotation, as cuTile has it."""

    constant: bool = False


@dataclass
class Each:
    each: Any


@dataclass
class Items:
    items: tuple[Any, ...]


def test_a_tuple_is_its_items_and_comes_back_as_it_was() -> None:
    marks = {"a": Mark(), "b": Items((Mark(), Each(Mark(True)))), "c": Mark(True)}
    arguments = Arguments({"a": (1, (2, ())), "b": (3, (4, 5)), "c": (6, 7)}, marks)
    assert [leaf.name for leaf in arguments.leaves] == ["a[0]", "a[1][0]", "b[0]", "b[1][0]", "b[1][1]", "c"]
    assert [leaf.name for leaf in arguments.plain] == ["a[0]", "a[1][0]", "b[0]"]
    assert arguments.nested(leaf.value for leaf in arguments.leaves) == [(1, (2, ())), (3, (4, 5)), (6, 7)]


def test_what_annotations_make_a_constant() -> None:
    assert is_constant(Mark(True)) and is_constant(Each(Mark(True))) and is_constant(Items((Mark(True),)))
    assert not any(map(is_constant, (Mark(), Each(Mark()), Items((Mark(True), Mark())), Items(()))))
