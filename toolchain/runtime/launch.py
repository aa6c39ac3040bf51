"""Launch checks: arguments that do not fit an entry give a LaunchError before anything reaches a device.

Names, dtypes, shapes, strides and alignment are checked once for each combination of layouts and kept as a Plan. A
later call with the same layouts only checks addresses, lifetime and scalar values before it launches.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ..contract.op import DTYPES, Param, ops
from ..contract.policy import Policy
from ..contract.sources import best_of
from ..errors import BundleError, LaunchError, UsageError
from .buffer import DeviceBuffer
from .executor import Executor
from .layout import Layout
from .overlaps import Placed, share_elements

if TYPE_CHECKING:
    from ..bundles.bundle import Bundle, BundleEntry

Args = Mapping[str, "DeviceBuffer | float"]
_INT32_MAX = 2**31 - 1
_PLANS_MAX = 8192  # plans that are kept; a decode loop over growing shapes must not use more and more memory


class Launcher:
    """Launches ops by name: finds the entry of `source` that fits the arguments, checks them, and runs it. Only entries
    of `target` are considered, by default the executor's target. `borrows_from`: the source whose entries run the ops
    of which `source` has none that fits; empty: there is no other. `borrowed`: the ops of which such entries were
    launched.

    A virtual source takes the entries of the source that was measured to be the fastest for the sizes of a launch; a
    bundle without such an entry is an error. `ran`: the ops of which entries were launched, by the entries' source."""

    def __init__(
        self, bundle: Bundle, source: str, executor: Executor, target: str | None = None, *, borrows_from: str = ""
    ) -> None:
        self.bundle, self.source, self.executor, self.borrows_from = bundle, source, executor, borrows_from
        self.target = target or executor.target
        self.borrowed: set[str] = set()
        self.ran: dict[str, set[str]] = {}
        self._best_of = best_of(source)
        self._plans: dict[tuple[object, ...], LaunchPlan] = {}

    def __call__(self, op: str, dtype: str, /, **args: DeviceBuffer | float) -> None:
        """Launches `op`; outputs are passed as arguments too. Raises LaunchError, or BundleError if no entry fits."""
        self._plan_of(op, dtype, args).launch(args)

    def prepare(self, op: str, dtype: str, /, **args: DeviceBuffer | float) -> None:
        """Does what the first launch with arguments of these layouts does before it launches: finds the entry, checks
        the arguments, loads the kernel. Raises as a launch does."""
        self._plan_of(op, dtype, args)

    def _plan_of(self, op: str, dtype: str, args: Args) -> LaunchPlan:
        key = (op, dtype, *args, *[a.layout if a.__class__ is DeviceBuffer else a.__class__ for a in args.values()])  # pyright: ignore[reportAttributeAccessIssue]
        plan = self._plans.get(key)
        return plan or _remember(self._plans, key, self._plan(op, dtype, args))

    def select(self, op: str, dtype: str, /, **args: DeviceBuffer | float) -> BundleEntry:
        """The entry that a launch with these arguments runs."""
        source = self.source if self._best_of else self.source_of(op, dtype)
        dims, misaligned, gapped = check_layouts(f"{source}/{op}[{dtype}]", op, dtype, args)
        if self._best_of:
            source = self._fastest(op, dtype, dims)
        try:
            return self.bundle.select(source, op, dtype, dims, misaligned, gapped, self.target)
        except LaunchError:
            if self.borrows_from in ("", source):
                raise
            return self.bundle.select(self.borrows_from, op, dtype, dims, misaligned, gapped, self.target)

    def has(self, op: str, dtype: str, dims: Mapping[str, int]) -> bool:
        """Whether there is an entry for arrays of these sizes that have no gaps and begin at multiples of 16 bytes."""
        try:
            source = self._fastest(op, dtype, dims) if self._best_of else self.source_of(op, dtype)
            self.bundle.select(source, op, dtype, dims, target=self.target)
        except (BundleError, LaunchError):
            return False
        return True

    def has_some(self, op: str, dtype: str) -> bool:
        """Whether there is an entry for arrays of any sizes."""
        sources = self._best_of or (self.source_of(op, dtype),)
        found = [entry for source in sources for entry in self.bundle.entries_of(source, op, dtype)]
        return any(entry.spec.runs_on(self.target) for entry in found)

    @property
    def policy(self) -> Policy:
        """That of the target for this source; for any, if the bundle lacks one of those that a virtual one is of."""
        found = self.bundle.policy(self.target)
        return found.of(self.source) if all(each in self.bundle.sources for each in self._best_of) else found

    @property
    def borrowed_ops(self) -> str:
        """The ops that another source's entries ran, in words; empty if there are none. Of a virtual source: all of
        them."""
        if self._best_of:
            return _told(self.ran)
        return f"borrowed from {self.borrows_from}: {', '.join(sorted(self.borrowed))}" if self.borrowed else ""

    def _fastest(self, op: str, dtype: str, dims: Mapping[str, int]) -> str:
        return self.bundle.fastest(self._best_of, op, dtype, dims, self.target)

    def source_of(self, op: str, dtype: str) -> str:
        """The source whose entries run an op: ours, or the one that we borrow from if we have no entry of it for this
        target."""
        if not self.borrows_from:
            return self.source
        own = self.bundle.entries_of(self.source, op, dtype)
        return self.source if any(entry.spec.runs_on(self.target) for entry in own) else self.borrows_from

    def _plan(self, op: str, dtype: str, args: Args) -> LaunchPlan:
        entry = self.select(op, dtype, **args)
        self.ran.setdefault(entry.spec.source, set()).add(op)
        if entry.spec.source != self.source:
            self.borrowed.add(op)
        return LaunchPlan(self.executor, self.bundle, entry, args)


def _told(ran: Mapping[str, set[str]]) -> str:
    """The ops by source, without a list for the source of which most are."""
    *fewer, (most, _) = sorted(ran.items(), key=lambda item: len(item[1])) or [("", set[str]())]
    said = [f"{source}: {', '.join(sorted(ops))}" for source, ops in fewer]
    return "; ".join([*said, f"{'all others' if said else 'all'}: {most}"]) if ran else ""


class EntryLauncher:
    """Launches a given entry, while a Launcher chooses one that fits."""

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self._plans: dict[tuple[object, ...], LaunchPlan] = {}

    def __call__(self, bundle: Bundle, entry: BundleEntry, args: Args) -> None:
        """Checks the arguments against the entry and launches it. Raises LaunchError."""
        kinds = [a.layout if isinstance(a, DeviceBuffer) else a.__class__ for a in args.values()]
        # A plan holds a reference to its bundle, so that no other bundle gets the same id.
        key = (id(bundle), entry.spec.source, entry.spec.symbol, *args, *kinds)
        plan = self._plans.get(key)
        if plan is None:
            plan = _remember(self._plans, key, LaunchPlan(self.executor, bundle, entry, args))
        plan.launch(args)


def _remember(plans: dict[tuple[object, ...], LaunchPlan], key: tuple[object, ...], plan: LaunchPlan) -> LaunchPlan:
    if len(plans) >= _PLANS_MAX:
        plans.clear()
    plans[key] = plan
    return plan


class LaunchPlan:
    """An entry that was checked against arguments of certain layouts, and can be launched with any such arguments."""

    def __init__(self, executor: Executor, bundle: Bundle, entry: BundleEntry, args: Args) -> None:
        spec = entry.spec
        dims, misaligned, gapped = check_layouts(spec.symbol, spec.op, spec.dtype, args)
        if why := spec.unmet(dims, misaligned, gapped):
            raise LaunchError(f"{spec.symbol}: {why}", hint="launch the op by name to have a fitting entry chosen")
        if spec.op_spec.peers and dims[spec.op_spec.ranks] != executor.ranks:
            ranks = dims[spec.op_spec.ranks]
            raise LaunchError(
                f"{spec.symbol}: it is for {ranks} ranks, {executor.name} is one of {executor.ranks}",
                hint="toolchain.runtime.peers.open_peers opens executors that share memory",
            )
        self.spec, self.bundle, self.executor = spec, bundle, executor
        self.arrays = tuple(p.name for p in spec.params if p.dims)
        self.scalars = tuple(p for p in spec.params if not p.dims)
        # Pairs of positions in `arrays` that must not share memory, and whether they may be the very same array.
        position = {name: i for i, name in enumerate(self.arrays)}
        outputs = [p.name for p in spec.params if p.role == "output"]
        self.apart = tuple(
            (position[out], position[other], (other, out) in spec.op_spec.aliases)
            for index, out in enumerate(outputs)
            for other in self.arrays
            if other not in outputs[: index + 1]
        )
        grid = spec.grid_for(dims, executor.sms)
        buffers = [_buffer(args[name]) for name in self.arrays]
        for name, buffer in zip(self.arrays, buffers, strict=True):
            entry.form.check_reach(spec.symbol, name, buffer.layout.shape, buffer.layout.strides)
        self._check_buffers(buffers)
        # None if there is nothing to launch
        self.command = executor.prepare(bundle, entry, buffers, grid) if min(grid) > 0 else None

    def launch(self, args: Args) -> None:
        arrays = [args[name] for name in self.arrays]
        self._check_buffers(arrays)  # pyright: ignore[reportArgumentType] - the layouts in a plan's key are buffers'
        scalars = [self._check_scalar(param, args[param.name]) for param in self.scalars]
        if self.command is not None:
            self.command(arrays, scalars)  # pyright: ignore[reportArgumentType]

    def _check_buffers(self, arrays: list[DeviceBuffer]) -> None:
        executor = self.executor
        for buffer in arrays:
            if buffer.executor is not executor or buffer.allocation.freed:
                self._refuse_owner(arrays)
        for out, other, may_be_same in self.apart:
            a, b = arrays[out], arrays[other]
            start, other_start = a.pointer, b.pointer
            if start < other_start + b.layout.span and other_start < start + a.layout.span:
                if may_be_same and start == other_start and a.layout is b.layout:
                    continue
                if _share_elements(a, b):
                    raise LaunchError(f"{self.spec.symbol}: {self.arrays[out]} overlaps {self.arrays[other]} in memory")

    def _refuse_owner(self, arrays: list[DeviceBuffer]) -> None:
        for name, buffer in zip(self.arrays, arrays, strict=True):
            if buffer.executor is not self.executor:
                raise LaunchError(
                    f"{self.spec.symbol}: {name} is on {buffer.executor.name}, the launch on {self.executor.name}"
                    + (", another executor of the same device" if buffer.executor.name == self.executor.name else "")
                )
            if buffer.allocation.freed:
                raise LaunchError(f"{self.spec.symbol}: {name} was freed: {buffer!r}")

    def _check_scalar(self, param: Param, value: DeviceBuffer | float) -> int | float:
        symbol, name = self.spec.symbol, param.name
        if param.dtype == "i32":
            if not isinstance(value, int | np.integer) or isinstance(value, bool):
                raise LaunchError(f"{symbol}: {name} must be an integer, is {value!r}")
            if not -_INT32_MAX - 1 <= value <= _INT32_MAX:
                raise LaunchError(f"{symbol}: {name} is {value}, outside of int32")
            return int(value)
        if not isinstance(value, int | float | np.integer | np.floating) or isinstance(value, bool):
            raise LaunchError(f"{symbol}: {name} must be a number, is {value!r}")
        number = float(value)
        if not math.isfinite(number) or abs(number) > _F32_MAX:
            raise LaunchError(f"{symbol}: {name} is {value}, not finite in f32")
        return number


_F32_MAX = float(np.finfo(np.float32).max)


def check_layouts(name: str, op: str, dtype: str, args: Args) -> tuple[dict[str, int], frozenset[str], frozenset[str]]:
    """Checks names, dtypes, ranks, shapes and strides of an op's arguments. Returns the sizes of its dimension symbols,
    its misaligned arrays, and those that are not contiguous. `name`: of what is launched, for the LaunchError that it
    raises, or UsageError for an op that there is not."""
    if op not in ops():
        raise UsageError(f"{name}: no op {op!r} in ops.toml", hint=f"one of {', '.join(ops())}")
    if dtype not in DTYPES:
        raise UsageError(f"{name}: dtype {dtype!r} is not one of {', '.join(DTYPES)}")
    params = ops()[op].params
    names = [p.name for p in params]
    if missing := [each for each in names if each not in args]:
        raise LaunchError(f"{name}: missing argument {', '.join(missing)}", hint=f"it takes {', '.join(names)}")
    if unknown := [each for each in args if each not in names]:
        raise LaunchError(f"{name}: unknown argument {', '.join(unknown)}", hint=f"it takes {', '.join(names)}")
    layouts: dict[str, Layout] = {}
    for param in params:
        value = args[param.name]
        if bool(param.dims) != isinstance(value, DeviceBuffer):
            wanted = f"an array of {param.storage(dtype)}" if param.dims else f"a scalar of {param.dtype}"
            raise LaunchError(f"{name}: {param.name} must be {wanted}, is a {type(value).__name__}")
        if isinstance(value, DeviceBuffer):
            layouts[param.name] = value.layout
            _check_layout(f"{name}: {param.name}", param, dtype, value.layout)
    dims = ops()[op].bind(name, {each: view.shape for each, view in layouts.items()})
    misaligned = frozenset(each for each, view in layouts.items() if not view.aligned)
    return dims, misaligned, frozenset(each for each, view in layouts.items() if not view.aligned_contiguous)


def _check_layout(where: str, param: Param, dtype: str, view: Layout) -> None:
    if view.dtype != param.storage(dtype):
        raise LaunchError(f"{where} is {view.dtype}, but must be {param.storage(dtype)}")
    if len(view.shape) != len(param.dims):
        return  # OpSpec.bind reports it, with the symbols' names
    if view.strides[-1] != 1:
        raise LaunchError(f"{where} has strides {list(view.strides)}: the last must be 1", hint="copy it first")
    if max((*view.shape, *view.strides)) > _INT32_MAX:
        raise LaunchError(f"{where} is {view}: sizes and strides must be below 2**31")
    if param.role == "output" and view.overlaps_itself:
        raise LaunchError(f"{where} is {view}: elements of an output must not share memory")


def _buffer(value: DeviceBuffer | float) -> DeviceBuffer:
    if not isinstance(value, DeviceBuffer):
        raise UsageError(f"{value!r} is not a DeviceBuffer")
    return value


def _share_elements(a: DeviceBuffer, b: DeviceBuffer) -> bool:
    views = ((buffer.pointer, buffer.layout) for buffer in (a, b))
    return share_elements(*(Placed(start, view.itemsize, view.shape, view.byte_strides) for start, view in views))
