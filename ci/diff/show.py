"""A comparison for a terminal, for a comment on a pull request, and as a page for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from .compare import Comparison, Pair
from .score import INSTRUCTION_BYTES, rules

SHOWN = 20  # kernels of each list in a terminal and a comment
ONLY_SHOWN = 5
MIXED = 4  # instructions of a kernel whose number changed
MARKDOWN_LIMIT = 60_000  # characters; GitHub refuses a comment above 65,536


def summary(made: Comparison) -> str:
    """One line: how many are suspicious, better, changed otherwise, identical, and in one bundle alone."""
    rest = len(made.changed) - len(made.suspicious) - len(made.better)
    only = sum(map(len, made.only))
    return (
        f"{len(made.suspicious)} suspicious, {len(made.better)} better, {rest} otherwise changed, "
        f"{made.identical} identical, {only} in one bundle alone"
    )


def why(pair: Pair) -> str:
    """The measures that changed, in words."""
    return ", ".join(map(str, pair.reasons)) or "other instructions or another order, the same resources"


def mix(pair: Pair, limit: int = MIXED) -> str:
    """The instructions whose number changed most."""
    return ", ".join(f"{name} {was} to {now}" for name, was, now in pair.mix()[:limit])


def text(made: Comparison) -> Iterable[str]:
    """Lines for a terminal."""
    yield f"{made.names[0]} to {made.names[1]}: {summary(made)}"
    yield from (f"  {line}" for line in made.tools)
    for title, pairs in (("suspicious", made.suspicious), ("better", made.better)):
        if pairs:
            yield f"{title}, by points:"
        for pair in pairs[:SHOWN]:
            yield f"  {max(pair.suspicion, pair.gain) if title == 'suspicious' else pair.gain:6.1f}  {pair.cell}"
            yield f"          {why(pair)}"
            if mixed := mix(pair):
                yield f"          instructions: {mixed}"
        if len(pairs) > SHOWN:
            yield f"  and {len(pairs) - SHOWN} more: --json, --html"
    for name, cells in zip(made.names, made.only, strict=True):
        if cells:
            more = f" and {len(cells) - ONLY_SHOWN} more" if len(cells) > ONLY_SHOWN else ""
            yield f"only in {name}: {', '.join(cells[:ONLY_SHOWN])}{more}"


def markdown(made: Comparison) -> str:
    """A comment for a pull request. Rows are left out, and counted, where it would get longer than a comment may."""
    lines = [f"### Machine code: {summary(made)}", "", *(f"- {line}" for line in made.tools), ""]
    for title, pairs in (("Suspicious", made.suspicious), ("Better", made.better)):
        if not pairs:
            continue
        lines += [f"**{title}**", "", "| points | kernel | target | what changed |", "|---:|---|---|---|"]
        for at, pair in enumerate(pairs):
            points = pair.suspicion if title == "Suspicious" else pair.gain
            row = f"| {points:.0f} | `{pair.name}` | {pair.target} | {why(pair)} |"
            if at >= SHOWN or len("\n".join([*lines, row])) > MARKDOWN_LIMIT:
                lines.append(f"| | {len(pairs) - at} more | | |")
                break
            lines.append(row)
        lines.append("")
    for name, cells in zip(made.names, made.only, strict=True):
        if cells:
            lines += [f"Only in {name}: {len(cells)}, such as `{cells[0]}`.", ""]
    lines += [f"Suspicious: {rules().threshold} points or more by `ci/diff/rules.toml`. Nothing was run on a GPU.", ""]
    return "\n".join(lines)


def by_group(pairs: Sequence[Pair]) -> list[tuple[str, str, int, int, int]]:
    """For each op and target: the number of changed, suspicious and better kernels."""

    def count(chosen: Iterable[Pair]) -> Counter[tuple[str, str]]:
        return Counter((pair.op, pair.target) for pair in chosen)

    changed = count(pairs)
    suspicious = count(pair for pair in pairs if pair.suspicious)
    better = count(pair for pair in pairs if pair.better)
    return [(*group, changed[group], suspicious[group], better[group]) for group in sorted(changed)]


def html(made: Comparison) -> str:
    """The page. Raises ImportError without jinja2."""
    import jinja2

    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    template = environment.from_string((Path(__file__).parent / "page.html.j2").read_text("utf-8"))
    return template.render(
        made=made, summary=summary(made), why=why, mix=mix, groups=by_group(made.changed), rules=rules(),
        instruction_bytes=INSTRUCTION_BYTES,
    )  # fmt: skip
