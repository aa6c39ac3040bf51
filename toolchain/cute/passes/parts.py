"""The parts of a copy or of a product of tiles, one for each call of its atom.

They follow from the layouts: the first mode is what an atom moves at once, all others are repeated.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..atoms.copy_atom import CopyAtom
from ..dialect.tensor_ops import operand_counts
from ..layout import Layout, logical_divide, make_layout, size


def by_atom(layout: Layout, atom: CopyAtom) -> Layout:
    """The layout with its first mode split into what the atom moves at once, and the rest."""
    if atom.matrix is not None:
        return layout  # its values are split where the tensor is divided among the threads
    count, first = atom.vector // atom.bits, layout[0]
    if size(first) == count or (is_split(layout) and size(first[0]) == count):
        return layout
    return logical_divide(layout, (Layout(count, 1),))


def is_split(layout: Layout) -> bool:
    """True if the first mode holds the atom's values and others: `((value, other), ...)`."""
    first = layout[0]
    return isinstance(first.shape, tuple) and len(first) == 2 and isinstance(layout.shape, tuple)


def atom_values(layout: Layout) -> Layout:
    """What the atom moves at once."""
    return layout[0][0] if is_split(layout) else layout[0]


def repeats(layout: Layout) -> Layout:
    """The other modes: an index of this layout is the number of a part."""
    first = [layout[0][1]] if is_split(layout) else []
    return make_layout(*first, *list(layout)[1:])


def products(d: Layout, a: Layout) -> Iterator[tuple[int, int, int]]:
    """M, N and K of each product of a tile. K is the outermost loop; along N it goes back and forth, so that registers
    of A and B are used again."""
    m_count, n_count = operand_counts(d)
    for k in range(operand_counts(a)[1]):
        for m in range(m_count):
            for step in range(n_count):
                yield m, n_count - 1 - step if m % 2 else step, k
