"""Locations and debug scopes to text. Scopes are named: `#di_file = #cuda_tile.di_file<...>`, before the first use."""

from __future__ import annotations

from collections.abc import Mapping

from ..dialect import debug
from .names import quote


class Places:
    """Spells locations. `definitions`: a line for each scope that was named."""

    def __init__(self) -> None:
        self.definitions: list[str] = []
        self.names: dict[debug.Node, str] = {}
        self.counts: dict[str, int] = {}

    def spell(self, place: debug.Place) -> str:
        """What stands inside `loc(...)`."""
        match place:
            case debug.Location():
                return f"{quote(place.file)}:{place.line}:{place.column}"
            case debug.Unknown():
                return "unknown"
            case debug.Range():
                return f"{self.spell(place.start)} to {place.end_line}:{place.end_column}"
            case debug.Named():
                return quote(place.name) + ("" if place.place is None else f"({self.spell(place.place)})")
            case debug.Fused():
                metadata = "" if place.metadata is None else f"<{place.metadata}>"
                return f"fused{metadata}[{', '.join(map(self.spell, place.places))}]"
            case debug.CallSite():
                return f"callsite({self.spell(place.callee)} at {self.spell(place.caller)})"
            case debug.Scoped():
                return f"#cuda_tile.di_loc<loc({self.spell(place.position)}) in {self.name(place.scope)}>"

    def name(self, node: debug.Node) -> str:
        """The name of a scope, after those that it names itself."""
        found = self.names.get(node)
        if found is None:
            kind, fields = self._spelled(node)
            count = self.counts.get(kind, 0)
            self.counts[kind] = count + 1
            found = self.names[node] = f"#{kind}{count or ''}"
            self.definitions.append(f"{found} = #cuda_tile.{kind}<{fields}>")
        return found

    def _spelled(self, node: debug.Node) -> tuple[str, str]:
        match node:
            case debug.File():
                return "di_file", f"{quote(node.name)} in {quote(node.directory)}"
            case debug.CompileUnit():
                return "di_compile_unit", _fields({"file": self.name(node.file)})
            case debug.Subprogram():
                given = {
                    "file": self.name(node.file),
                    "line": node.line,
                    "name": quote(node.name),
                    "linkageName": quote(node.linkage_name),
                    "compileUnit": self.name(node.compile_unit),
                }
                return "di_subprogram", _fields(given | ({"scopeLine": node.scope_line} if node.scope_line else {}))
            case debug.LexicalBlock():
                given = {"scope": self.name(node.scope), "file": self.name(node.file), "line": node.line}
                return "di_lexical_block", _fields(given | ({"column": node.column} if node.column else {}))


def _fields(given: Mapping[str, object]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in given.items())
