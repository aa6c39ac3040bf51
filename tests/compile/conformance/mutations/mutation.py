"""A kernel bug: what stands in a part of the `.mlir` files, and what replaces it."""

from __future__ import annotations

from dataclasses import dataclass

from toolchain.tileir.compose import Library


@dataclass(frozen=True)
class Mutation:
    """`nth` of `count` places where `old` stands in the part."""

    part: str
    kernel: str
    bug: str
    old: str
    new: str
    dtype: str = "f32"
    nth: int = 1
    count: int = 1

    def apply(self, library: Library) -> Library:
        """The library with the bug. Raises ValueError if the part's text is not there as often as it should be."""
        file, start, end = place(library, self.part)
        texts = library.texts
        text = texts[file][start:end]
        if text.count(self.old) != self.count:
            raise ValueError(f"{self.old!r} stands {text.count(self.old)} times in {self.part}: say the bug anew")
        parts = text.split(self.old)
        changed = self.old.join(parts[: self.nth]) + self.new + self.old.join(parts[self.nth :])
        return library.with_file(file, texts[file][:start] + changed + texts[file][end:])


def place(library: Library, part: str) -> tuple[str, int, int]:
    """The file of a part, and where its text begins and ends there. Raises ValueError if there is no such part."""
    first, name = part.split(" ")
    if name.startswith("!"):
        file = next((f for key, f in library.files.items() if key.endswith(f"/{first}.mlir")), None)
        span = file.aliases.get(name[1:]) if file else None
    else:
        item = library.find(first, name[1:])
        file, span = (item.file, (item.start, item.end)) if item else (None, None)
    if file is None or span is None:
        raise ValueError(f"there is no {part} in kernels_mlir")
    last = file.tokens[span[1] - 1]
    return file.name, file.tokens[span[0]].at, last.at + len(last.text)
