"""Which pages of a cache are free. Pages are numbers here; their memory is in paged_cache.py."""

from __future__ import annotations

from collections.abc import Sequence

from toolchain.contract.expressions import cdiv

PAGE = 64  # positions; a multiple of attention's tiles of keys
PIECE = 16  # rows of a prompt that are attended to together, so many as attention's tiles have queries


class Pages:
    """`count` pages from number `first` on, that are taken and given back."""

    def __init__(self, count: int, first: int = 0) -> None:
        self.count = count
        self._free = list(range(first + count - 1, first - 1, -1))
        self._taken: set[int] = set()

    @property
    def free(self) -> int:
        return len(self._free)

    def take(self, count: int) -> list[int]:
        """So many pages that nobody has. Raises ValueError if there are fewer."""
        if count > len(self._free):
            raise ValueError(f"{count} pages wanted, {len(self._free)} are free")
        taken = [self._free.pop() for _ in range(count)]
        self._taken.update(taken)
        return taken

    def give(self, pages: Sequence[int]) -> None:
        """Pages back that were taken. Raises ValueError for others."""
        if strange := set(pages) - self._taken:
            raise ValueError(f"pages {sorted(strange)} were not taken")
        self._taken.difference_update(pages)
        self._free.extend(pages)


def pages_for(positions: int) -> int:
    """How many pages hold so many positions."""
    return cdiv(positions, PAGE)
