"""The pictures of docs/tiles.md: one idea each. `python -m ci.site --generate` writes them to docs/pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from toolchain.files import write_whole
from toolchain.knobs import ROOT

from .drawing import BLUE, GREEN, GREY, PLAIN, RED, YELLOW, Drawing

FOLDER = ROOT / "docs/pictures"
CELL = 22


def grid() -> Drawing:
    """An array cut into tiles, and the blocks that make them."""
    picture = Drawing(640, 250, "An array of 8 x 12 elements is cut into 2 x 3 tiles; each block of the grid makes one")
    picture.text(20, 20, "out: 8 x 12 elements, in tiles of 4 x 4")

    def fill(row: int, column: int) -> str:
        return YELLOW if (row // 4, column // 4) == (1, 2) else BLUE if (row // 4 + column // 4) % 2 else GREEN

    picture.cells(20, 34, 8, 12, CELL, fill)
    for row in range(2):
        for column in range(3):
            x, y = 20 + column * 4 * CELL, 34 + row * 4 * CELL
            picture.text(x + 2 * CELL, y + 2 * CELL + 4, f"tile {row}, {column}", "middle")
    picture.text(350, 20, "the grid: 3 x 2 blocks, in any order")
    for row in range(2):
        for column in range(3):
            chosen = (row, column) == (1, 2)
            kind = YELLOW if chosen else BLUE if (row + column) % 2 else GREEN
            picture.box(350 + column * 92, 34 + row * 50, 84, 40, f"block {column}, {row}", kind)
    picture.arrow(576, 126, 576, 152)
    picture.box(
        350, 154, 268, 66, "%x, %y, %z = get_tile_block_id\nload tile (%y, %x)\ncompute, store tile (%y, %x)", YELLOW
    )
    return picture


def simt() -> Drawing:
    """The same work, written for one thread and for one tile."""
    picture = Drawing(640, 300, "In CUDA C++ you write what one thread does; with tiles, what one block does to a tile")
    colours = (BLUE, GREEN, YELLOW, RED)
    picture.text(160, 20, "SIMT: you write one thread", "middle")
    picture.cells(
        72, 34, 8, 8, CELL, lambda row, _: colours[row // 2],
        lambda row, column: f"t{row % 2 * 8 + column + 16 * (row // 2)}",
    )  # fmt: skip
    left = ("i = blockIdx * blockDim + threadIdx", "if (i < n)", "which bytes do 32 threads fetch together?",
            "who waits for whom: __syncthreads()")  # fmt: skip
    for number, line in enumerate(left):
        picture.text(160, 232 + 17 * number, line, "middle")
    picture.line(320, 12, 320, 292, "#bbbbbb", 1, "5 4")
    picture.text(480, 20, "tiles: you write one block", "middle")
    picture.box(392, 34, 8 * CELL, 8 * CELL, "%x : tile<8x8xf32>\n\none value,\n64 elements", YELLOW)
    right = ("%x = load_view_tko %tiles[%m, %n]", "%y = mulf %x, %two : tile<8x8xf32>",
             "store_view_tko %y, %out[%m, %n]", "the rest is the compiler's")  # fmt: skip
    for number, line in enumerate(right):
        picture.text(480, 232 + 17 * number, line, "middle")
    return picture


def edge() -> Drawing:
    """What happens outside the array."""
    picture = Drawing(
        640, 190, "The last tile reaches beyond the array: what is read there is padding, what is stored is dropped"
    )
    size = 32

    def inside(_: int, column: int) -> str:
        return GREEN if column < 10 else RED

    def value(_: int, column: int) -> str:
        return str(column + 1) if column < 10 else "0"

    picture.text(20, 20, "10 elements, in tiles of 4: the third tile has two of them")
    picture.cells(20, 34, 1, 12, size, inside, value)
    for tile in range(3):
        x = 20 + tile * 4 * size
        picture.line(x + 2, 76, x + 4 * size - 2, 76, "#333333", 2)
        picture.text(x + 2 * size, 92, f"tile {tile}", "middle")
    picture.arrow(20 + 11 * size, 100, 20 + 11 * size, 124)
    picture.box(200, 126, 230, 46, "load: padding_value = zero\ngives [9, 10, 0, 0]", GREEN)
    picture.box(440, 126, 180, 46, "store: writes 9 and 10,\nand nothing beyond", RED)
    return picture


def product() -> Drawing:
    """A block's tile of a matrix product, and its loop over K."""
    picture = Drawing(640, 330, "A matrix product: a block owns one tile of the result and walks along K")
    size = 14

    def strip(band: Callable[[int, int], bool], step: Callable[[int, int], bool]) -> Callable[[int, int], str]:
        return lambda row, column: YELLOW if step(row, column) else BLUE if band(row, column) else GREY

    picture.text(90, 160, "lhs: M x K")
    picture.cells(90, 170, 8, 8, size, strip(lambda r, _: r >= 4, lambda r, c: r >= 4 and c >= 4))
    picture.text(270, 20, "rhs: K x N")
    picture.cells(270, 28, 8, 12, size, strip(lambda _, c: 4 <= c < 8, lambda r, c: 4 <= c < 8 and r >= 4))
    picture.text(270, 160, "out: M x N")
    picture.cells(270, 170, 8, 12, size, lambda r, c: GREEN if r >= 4 and 4 <= c < 8 else GREY)
    picture.text(90, 305, "round k of the loop takes the yellow tiles")
    steps = ("acc = 0", "for k in 0 .. K / BK:", "lhs = load [m, k]", "rhs = load [k, n]", "acc = mmaf lhs, rhs, acc",
             "store acc at [m, n]")  # fmt: skip
    picture.box(
        460,
        170,
        168,
        112,
        "\n".join(steps),
        GREEN,
    )
    return picture


def tokens() -> Drawing:
    """Accesses are ordered by tokens alone."""
    picture = Drawing(
        640, 210, "A load comes after a store if it takes the store's token; without it the order is open"
    )
    picture.text(150, 20, "ordered", "middle")
    picture.box(40, 32, 220, 36, "%t = store_view_tko ...", GREEN)
    picture.arrow(150, 68, 150, 116)
    picture.text(160, 96, "token = %t")
    picture.box(40, 118, 220, 36, "load_view_tko ... token = %t", GREEN)
    picture.text(150, 182, "the load sees what was stored", "middle")
    picture.line(320, 12, 320, 198, "#bbbbbb", 1, "5 4")
    picture.text(480, 20, "not ordered", "middle")
    picture.box(370, 32, 220, 36, "%t = store_view_tko ...", RED)
    picture.box(370, 118, 220, 36, "load_view_tko ...", RED)
    picture.text(480, 182, "the sanitizer reports a race", "middle")
    return picture


def decides() -> Drawing:
    """Who decides what."""
    picture = Drawing(
        640, 300, "You decide on tiles, grid and order; the compiler decides on threads, registers and copies"
    )
    yours = ("the shape of the tiles", "the grid: which block makes which tile", "the arithmetic and its dtypes",
             "what is known: divisible, inside, aligned", "hints: occupancy, latency, warps")  # fmt: skip
    theirs = ("elements to threads and registers", "shared memory, and when to use it",
              "copy engine and bulk copies (TMA)",
              "tensor cores and their layouts", "barriers, pipelining, edges of the array")  # fmt: skip
    for x, title, rows, kind in ((20, "you", yours, YELLOW), (330, "the compiler", theirs, BLUE)):
        picture.text(x + 145, 20, title, "middle")
        for number, row in enumerate(rows):
            picture.box(x, 32 + 50 * number, 290, 40, row, kind if number < 5 else PLAIN)
    return picture


PICTURES: Mapping[str, Callable[[], Drawing]] = {
    "grid": grid, "simt": simt, "edge": edge, "product": product, "tokens": tokens, "decides": decides,
}  # fmt: skip


def write(folder: Path = FOLDER) -> None:
    for name, draw in PICTURES.items():
        write_whole(folder / f"{name}.svg", draw().render(), parents=True)
