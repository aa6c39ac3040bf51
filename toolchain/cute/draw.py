"""Pictures of layouts: a grid of offsets coloured by memory bank, or of an atom's threads and values. Text or SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from ..errors import UsageError
from .atoms import MatrixCopyAtom, MmaAtom
from .atoms.mma import WARP
from .atoms.tcgen05 import LANES, Tcgen05Atom
from .layout import ComposedLayout, Layout, bank_conflicts, size

MAX_CELLS = 16384  # of a picture: more than that nobody can read
BANKS = 32
WIDTH, HEIGHT, MARGIN = 46, 22, 30  # pixels of a cell, and around the grid


@dataclass(frozen=True)
class Cell:
    """What stands in a cell, and the number of its colour: cells of one colour share a bank or a thread."""

    label: str
    colour: int


@dataclass(frozen=True)
class Picture:
    """A grid with a title. `colours`: how many there are."""

    title: str
    rows: Sequence[Sequence[Cell]]
    colours: int


def parse_layout(written: str) -> Layout | ComposedLayout:
    """A layout, or a composed one such as `S<3,4,3> o 0 o (8,64):(64,1)`. Raises LayoutError."""
    return ComposedLayout.parse(written) if " o " in written else Layout.parse(written)


def of_layout(layout: Layout | ComposedLayout, element_bytes: int = 4, access: Layout | None = None) -> Picture:
    """The offset of each element of a layout of one or two modes, coloured by its bank of shared memory.

    `access`: the index that each of up to 32 threads reaches at once; the title then says how many meet in the busiest
    bank. Raises UsageError for a layout that cannot be drawn, LayoutError for elements wider than a bank.
    """
    outer = layout.outer if isinstance(layout, ComposedLayout) else layout
    shape = outer.shape if isinstance(outer.shape, tuple) else (1, outer.shape)
    if len(shape) != 2 or "?" in str(layout) or "@" in str(layout):
        raise UsageError(f"{layout} cannot be drawn", hint="draw a layout of one or two modes of known integers")
    flat = Layout(shape, outer.stride if isinstance(outer.shape, tuple) else (0, outer.stride))
    drawn = ComposedLayout(layout.inner, layout.offset, flat) if isinstance(layout, ComposedLayout) else flat
    height, width = size(flat[0]), size(flat[1])
    _check(height * width, str(layout))
    offsets = [[drawn((row, column)) for column in range(width)] for row in range(height)]
    rows = [[Cell(str(offset), offset * element_bytes // 4 % BANKS) for offset in line] for line in offsets]
    title = f"{layout}, {element_bytes} bytes an element"
    if access is not None:
        title += f", {bank_conflicts(layout, access, element_bytes)}-way bank conflict of threads {access}"
    return Picture(title, rows, BANKS)


def of_atom(atom: MmaAtom, operand: str) -> Picture:
    """The thread and the value that hold each element of an operand's tile. Raises UsageError."""
    layout = atom.layout(operand)
    height, width = atom.tile(operand)
    _check(height * width, atom.name)
    dtype = atom.c if operand == "c" else atom.ab
    title = f"{atom.name}, {operand.upper()}: {height} x {width} of {dtype}"
    return Picture(title, _held(layout, height, width), atom.threads)


def of_copy(atom: MatrixCopyAtom, operand: str) -> Picture:
    """The thread and the value that hold each element of the stacked matrices: `registers`, or `rows`, where a thread
    gives the address of a row. Raises UsageError."""
    layout = atom.layout(operand)
    height, width = atom.tile
    title = f"{atom.name}, {operand}: {height} x {width} elements of 16 bits"
    return Picture(title, _held(layout, height, width), WARP)


def of_tensor_memory(atom: Tcgen05Atom) -> Picture:
    """The thread of a warpgroup and the value that read each element of an accumulator in tensor memory: a lane is a
    row. Raises UsageError if some rows have no lane of their own."""
    _check(atom.m * atom.n, atom.name)
    title = f"{atom.name}, C in tensor memory: {atom.m} lanes x {atom.n} columns of {atom.c}"
    return Picture(title, _held(atom.c_layout, atom.m, atom.n), LANES)


def _held(layout: Layout, height: int, width: int) -> list[list[Cell]]:
    """A thread-value layout as a grid."""
    cells = [[Cell("", 0)] * width for _ in range(height)]
    for thread in range(size(layout[0])):
        for value in range(size(layout[1])):
            offset = layout((thread, value))
            cells[offset % height][offset // height] = Cell(f"T{thread}V{value}", thread)
    return cells


def _check(cells: int, what: str) -> None:
    if cells > MAX_CELLS:
        raise UsageError(f"{what} has {cells} elements: more than {MAX_CELLS}", hint="draw a tile of it")


def as_text(picture: Picture) -> str:
    """Lines for a terminal: the title, then a row of labels for each row of the grid."""
    wide = max(len(cell.label) for row in picture.rows for cell in row)
    left = len(str(len(picture.rows) - 1))
    head = " " * left + "".join(f" {column:>{wide}}" for column in range(len(picture.rows[0])))
    lines = [f"{number:>{left}}" + "".join(f" {cell.label:>{wide}}" for cell in row)
             for number, row in enumerate(picture.rows)]  # fmt: skip
    return "\n".join([picture.title, head, *lines]) + "\n"


def as_svg(picture: Picture) -> str:
    """The picture as an SVG file. The same picture gives the same bytes."""
    width = MARGIN + WIDTH * len(picture.rows[0]) + MARGIN
    height = 2 * MARGIN + HEIGHT * len(picture.rows) + MARGIN
    box = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    font = 'font-family="sans-serif" font-size="11" text-anchor="middle"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {box} {font}>',
        f"<title>{escape(picture.title)}</title>",
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{MARGIN}" y="20" text-anchor="start" font-size="13">{escape(picture.title)}</text>',
    ]
    for column in range(len(picture.rows[0])):
        parts.append(f'<text x="{MARGIN + WIDTH * (column + 0.5)}" y="{2 * MARGIN - 6}" fill="#555">{column}</text>')
    for number, row in enumerate(picture.rows):
        top = 2 * MARGIN + HEIGHT * number
        parts.append(f'<text x="{MARGIN - 12}" y="{top + 15}" fill="#555">{number}</text>')
        for column, cell in enumerate(row):
            x = MARGIN + WIDTH * column
            parts.append(
                f'<rect x="{x}" y="{top}" width="{WIDTH}" height="{HEIGHT}" fill="{_colour(cell.colour, picture)}" '
                f'stroke="#777"/><text x="{x + WIDTH / 2}" y="{top + 15}">{escape(cell.label)}</text>'
            )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _colour(number: int, picture: Picture) -> str:
    """Light enough for black text; neighbours in number differ in hue."""
    return f"hsl({number * 360 // picture.colours}, 70%, {82 if number % 2 else 70}%)"
