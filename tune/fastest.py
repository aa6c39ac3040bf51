"""Measures which source has the fastest entry: for each class of shapes, the entry that each source would launch.

Like the other phases of tuning, compiling needs no GPU and measuring no compiler: `compile_` writes a bundle, `measure`
runs where the GPU is, and fastest_rows.py writes what was found to `entries/<target>.toml`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from toolchain.bundles.bundle import Bundle, BundleEntry, FileRef
from toolchain.contract.artifact import tile_ir
from toolchain.contract.entry import EntrySpec
from toolchain.contract.fastest import Pick
from toolchain.contract.sources import best_of, load_source, packages
from toolchain.errors import BundleError, LaunchError, UsageError, WrongTarget
from toolchain.files import write_whole
from toolchain.tables import check_keys, read_table, tables, text, texts

from .bench import GpuBench, Setup
from .fastest_model import Passed, in_passes, launched_in_passes
from .spaces import Dims, ShapeClass, Spaces, load_spaces, parse_shape, shape_name
from .worker import Machine, Shape, Task, Worker

SOURCE = "fastest"
PATH = Path(__file__).parent / "fastest.toml"
FILE = "fastest.json"
BUNDLE = "bundle"
TURNS = 2  # each source is measured this often, the second time in reversed order


@dataclass(frozen=True)
class Class:
    """A class of shapes of an op."""

    op: str
    made: ShapeClass

    @property
    def title(self) -> str:
        return f"{self.op} {self.made.name}"


@dataclass(frozen=True)
class Timed:
    """One source's entry at one shape. `us`: the lower of the medians of its turns; `low` and `high`: the least and the
    largest sample of all. `why`: what was wrong, or empty."""

    op: str
    shape_class: str
    shape: str
    source: str
    entry: str
    us: float | None
    low: float | None
    high: float | None
    why: str = ""


@dataclass(frozen=True)
class Found:
    """What was measured on a GPU, in a dtype. `passes`: of a model, with one pick each."""

    machine: Machine
    date: str
    dtype: str
    rows: Sequence[Timed]
    passes: Sequence[Passed] = ()

    def save(self, path: Path) -> None:
        write_whole(path, json.dumps(asdict(self), indent=1) + "\n", parents=True)

    @classmethod
    def load(cls, path: Path) -> Found:
        """Raises UsageError if there is no such file, or another one."""
        try:
            read: Any = json.loads(path.read_text())
            rows = tuple(Timed(**row) for row in read["rows"])
            passes = tuple(Passed(**row) for row in read["passes"])
            return cls(Machine(**read["machine"]), read["date"], read["dtype"], rows, passes)
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error}", hint="python3 -m tune fastest writes it") from error
        except (ValueError, KeyError, TypeError) as error:
            raise UsageError(f"{path} is damaged: {type(error).__name__}: {error}", hint="measure again") from error


def classes(path: Path = PATH, spaces: Spaces | None = None) -> tuple[str, Sequence[Class]]:
    """The dtype in which is measured, and the classes. Raises UsageError for a wrong file."""
    table = read_table(path)
    check_keys(table, {"dtype": text, "ops": texts, "without": texts, "class": tables}, str(path))
    known = spaces or load_spaces()
    found: dict[tuple[str, str], Class] = {}
    for row in table["class"]:
        shapes = tuple(parse_shape(shape_name(dims)) for dims in row["shapes"])
        made = ShapeClass(row["name"], tuple(row["where"]), shapes)
        if odd := [dims for dims in shapes if not made.holds(dims)]:
            raise UsageError(f"{path}: {row['op']} {row['name']} does not take its own {shape_name(odd[0])}")
        found[row["op"], row["name"]] = Class(row["op"], made)
    for space in known.shared:
        for made in space.classes if space.op in table["ops"] else ():
            if made.name not in table["without"]:
                found.setdefault((space.op, made.name), Class(space.op, made))
    order = {op: number for number, op in enumerate(table["ops"])}
    if unknown := [each.op for each in found.values() if each.op not in order]:
        raise UsageError(f"{path}: {unknown[0]} has a class, but is not among `ops`")
    return table["dtype"], sorted(found.values(), key=lambda each: order[each.op])


def entry_at(bundle: Bundle, source: str, each: Class, dtype: str, dims: Dims, target: str) -> BundleEntry | None:
    """The entry of a source that a launch of this shape runs; None if the source has none."""
    try:
        return bundle.select(source, each.op, dtype, dims, target=target)
    except (BundleError, LaunchError):
        return None


def entries(target: str) -> list[tuple[str, EntrySpec]]:
    """The entries to compile, each with its source's package, in their sources' order of preference: those that the
    classes' shapes run, and those that a model's passes run."""
    dtype, wanted = classes()
    modules = {source: packages()[source] for source in best_of(SOURCE)}
    nothing, form = FileRef(Path(), ""), tile_ir(b"", "13.4").form
    specs = [spec for module in modules.values() for spec in load_source(module).entries()]
    dry = Bundle(Path(), tuple(BundleEntry(spec, nothing, form, {}) for spec in specs), {})
    found = {(spec.source, spec.symbol) for spec in launched_in_passes(best_of(SOURCE), target, dtype)}
    for each in wanted:
        for dims in each.made.shapes:
            for source in modules:
                if chosen := entry_at(dry, source, each, dtype, dims, target):
                    found.add((source, chosen.spec.symbol))
    return [(modules[spec.source], spec) for spec in specs if (spec.source, spec.symbol) in found]


def measure(
    folder: Path, executor: str, timeout_s: float, stop_after_s: float, say: Callable[[str], object],
    pick: Callable[[Found], Sequence[Pick]],
) -> bool:  # fmt: skip
    """Measure everything and write `fastest.json` to the folder: the classes, and then a model with each of the picks
    that `pick` makes of these. Returns True if every entry was right and timed, and the time sufficed. Raises
    WrongTarget, DeviceError, UsageError."""
    bundle = Bundle.load(folder / BUNDLE)
    (target,) = bundle.targets
    dtype, wanted = classes()
    started, rows, whole, found = time.monotonic(), list[Timed](), True, None
    setup = Setup(folder / BUNDLE, folder / BUNDLE, executor)
    with Worker(partial(GpuBench, setup), timeout_s) as worker:
        machine = worker.describe()
        if machine.kind == "cuda" and machine.target != target:
            raise WrongTarget(f"{machine.gpu} is {machine.target}; the entries were compiled for {target}")
        for each in wanted:
            for dims in each.made.shapes:
                if time.monotonic() - started > stop_after_s:
                    say(f"stopped after {stop_after_s:g} s, before {each.title} {shape_name(dims)}")
                    return False
                there = {
                    source: entry.spec.symbol
                    for source in best_of(SOURCE)
                    if (entry := entry_at(bundle, source, each, dtype, dims, target))
                }
                if len(there) < 2:
                    continue
                worker.prepare(Shape(each.op, dtype, dims, each.made.cold))
                timed = _turns(worker, each, dims, there)
                rows += timed
                whole = whole and not any(row.why for row in timed)
                times = (f"{row.source} {f'{row.us:.4g}' if row.us else row.why}" for row in timed)
                say(f"{each.title} {shape_name(dims)}: {', '.join(times)}")
                found = Found(machine, time.strftime("%Y-%m-%d", time.gmtime()), dtype, tuple(rows))
                found.save(folder / FILE)
    if whole and found is not None:
        passes = in_passes(bundle, pick(found), executor, dtype, say)
        replace(found, passes=tuple(passes)).save(folder / FILE)
    return whole


def _turns(worker: Worker, each: Class, dims: Dims, there: Mapping[str, str]) -> list[Timed]:
    """Every source's entry at a shape that is prepared."""
    seen: dict[str, list[tuple[float, float, float]]] = {source: [] for source in there}
    wrong: dict[str, str] = {}
    for turn in range(TURNS):
        for source in list(there)[:: -1 if turn % 2 else 1]:
            outcome = worker.measure(Task(source, None, None))
            if outcome.us is None or outcome.low is None or outcome.high is None:
                wrong[source] = f"{outcome.status}: {outcome.why}"
            else:
                seen[source].append((outcome.us, outcome.low, outcome.high))
    made: list[Timed] = []
    for source, symbol in there.items():
        at = (each.op, each.made.name, shape_name(dims), source, symbol)
        if source in wrong:
            made.append(Timed(*at, None, None, None, wrong[source]))
        else:
            us, low, high = zip(*seen[source], strict=True)
            made.append(Timed(*at, min(us), min(low), max(high)))
    return made
