"""Traces a Python function to a kernel of `cute` IR.

While a function runs, every call of the front end inserts an operation where the trace stands. What Python knows when
it runs (shapes, layouts, atoms, loops over `range`) is known to the kernel's compiler.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Generator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from xdsl.dialects import llvm, scf
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    IntAttr,
    IntegerAttr,
    ModuleOp,
    UnitAttr,
    i8,
    i32,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from ...errors import UsageError
from ..compile import lower_module
from ..dialect.ops import StaticOp
from ..dialect.types import CuteType
from ..nvvm import compile_to_ptx
from ..nvvm.dialect import GpuModuleOp
from ..nvvm.emit import Emitter, uncollected
from .caller import caller

Op = TypeVar("Op", bound=Operation)
SHARED = llvm.LLVMPointerType(IntAttr(3))
SHARED_SYMBOL = "shared_memory"
SharedPart = tuple[int, int, str]  # the first byte, how many, and what it is
_current: ContextVar[Trace | None] = ContextVar("trace", default=None)


class _Placing(Emitter):
    """A builder that gives each operation its place in Python."""

    def make(
        self, kind: type[Op], operands: Sequence[SSAValue] = (), results: Sequence[Attribute] = (),
        properties: Mapping[str, Attribute] | None = None,
    ) -> Op:  # fmt: skip
        op = super().make(kind, operands, results, properties)
        op.location = caller()
        return op


@dataclass
class Trace:
    """A kernel under construction. `shared_bytes`: of dynamic shared memory so far."""

    entry: Block
    builder: Emitter
    shared_bytes: int = 0
    shared_base: SSAValue | None = None
    waits: bool = False
    attributes: dict[str, Attribute] = field(default_factory=dict[str, Attribute])
    shared: list[SharedPart] = field(default_factory=list[SharedPart])

    def insert(self, op: Op) -> Op:
        op.location = caller()
        return self.builder.insert(op)

    def make(self, kind: type[Op], operands: Sequence[SSAValue], results: Sequence[Attribute] = ()) -> Op:
        """As `insert`, without the checks of the operation's constructor."""
        op = self.builder.make(kind, operands, results)
        op.location = caller()
        return op

    def static(self, kind: CuteType) -> SSAValue:
        """A value of `cute` whose numbers are all known, made once in a block."""
        return self.builder.once((StaticOp, kind), StaticOp, (), kind)

    @contextlib.contextmanager
    def inside(self, block: Block) -> Generator[None]:
        """Operations go to the end of a block for a while."""
        before, self.builder.insertion_point = self.builder.insertion_point, InsertPoint.at_end(block)
        try:
            yield
        finally:
            self.builder.insertion_point = before


def current() -> Trace:
    """The kernel under construction. Raises UsageError outside of one."""
    if (found := _current.get()) is None:
        raise UsageError("this is called while a kernel is traced", hint="call it in a function with @kernel(...)")
    return found


@dataclass(frozen=True)
class Kernel:
    """A traced kernel: its module of `cute` IR, which `ptx` lowers. `parameters`, `names`: of the function; `shared`:
    what its shared memory holds."""

    name: str
    module: ModuleOp
    threads: int
    shared_bytes: int
    waits: bool
    parameters: tuple[Parameter, ...] = ()
    names: tuple[str, ...] = ()
    shared: tuple[SharedPart, ...] = ()

    def __str__(self) -> str:
        return str(self.module)

    @uncollected()
    def lowered(self, arch: str = "") -> ModuleOp:
        """A copy of the module at the base level; if an architecture is given, for it."""
        return lower_module(self.module.clone(), arch)

    @uncollected()
    def ptx(self, arch: str, *, level: int = 3) -> str:
        """PTX for an architecture such as `sm_90a`. Raises SourceError, UsageError or ToolchainError."""
        return compile_to_ptx(self.lowered(arch), arch, level=level, name=self.name)


def kernel(
    *parameters: Parameter, threads: int = 128, name: str = "", min_blocks: int = 0,
    cluster: tuple[int, int, int] = (1, 1, 1),
) -> Callable[[Callable[..., None]], Kernel]:  # fmt: skip
    """A decorator that traces the function at once: below `@kernel(Array("f32"), threads=128)`, `def scale(x): ...` is
    a Kernel. `parameters`: what the function's arguments are. `min_blocks`: of a multiprocessor, a bound on registers.
    `cluster`: the blocks of a cluster in x, y and z, for sm_90 and later; the grid is a multiple of it.

    Raises UsageError if the function has another number of arguments, and as the operations that it calls.
    """

    def traced(function: Callable[..., None]) -> Kernel:
        limits: dict[str, Attribute] = {"nvvm.reqntid": DenseArrayBase.from_list(i32, [threads])}
        if min_blocks:
            limits["nvvm.minctasm"] = IntegerAttr(min_blocks, i32)
        if cluster != (1, 1, 1):
            limits["nvvm.cluster_dim"] = DenseArrayBase.from_list(i32, cluster)
        return _traced(function, parameters, threads, name or function.__name__, limits)

    return traced


class Parameter(Protocol):
    """An argument of a kernel: one or more parameters of the function at the base level."""

    @property
    def types(self) -> list[Attribute]: ...

    @property
    def attributes(self) -> list[DictionaryAttr]: ...

    def bind(self, values: list[SSAValue]) -> Any:
        """What the traced function gets."""


@uncollected()
def _traced(
    function: Callable[..., None], parameters: Sequence[Parameter], threads: int, name: str,
    limits: Mapping[str, Attribute],
) -> Kernel:  # fmt: skip
    taken = inspect.signature(function).parameters.values()
    if len(taken) != len(parameters) and not any(one.kind is one.VAR_POSITIONAL for one in taken):
        raise UsageError(f"{name} has {len(taken)} arguments, and @kernel names {len(parameters)}")
    types = [t for parameter in parameters for t in parameter.types]
    said = [a for parameter in parameters for a in parameter.attributes]
    block = Block(arg_types=types)
    trace = Trace(block, _Placing(InsertPoint.at_end(block)))
    token = _current.set(trace)
    try:
        values, bound = list[SSAValue](block.args), list[Any]()
        for parameter in parameters:
            count = len(parameter.types)
            bound.append(parameter.bind(values[:count]))
            del values[:count]
        function(*bound)
    finally:
        _current.reset(token)
    trace.insert(llvm.ReturnOp())
    module = _module(name, types, said, block, trace, limits)
    names = _names(function, len(parameters))
    return Kernel(name, module, threads, trace.shared_bytes, trace.waits, tuple(parameters), names, tuple(trace.shared))


def _names(function: Callable[..., None], count: int) -> tuple[str, ...]:
    """The names of a function's arguments; those of `*arguments` are numbered."""
    made: list[str] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is not parameter.VAR_POSITIONAL:
            made.append(parameter.name)
            continue
        made += [f"{parameter.name}[{i}]" for i in range(count - len(made))]
    return tuple(made)


def _module(
    name: str, types: Sequence[Attribute], said: Sequence[DictionaryAttr], block: Block, trace: Trace,
    limits: Mapping[str, Attribute],
) -> ModuleOp:  # fmt: skip
    function = llvm.FuncOp(name, llvm.LLVMFunctionType(list(types)), llvm.LinkageAttr("external"), body=Region(block))
    function.attributes["nvvm.kernel"] = UnitAttr()
    function.attributes.update(limits)
    function.properties["arg_attrs"] = ArrayAttr(list(said))
    body: list[Operation] = [function]
    if trace.shared_bytes:
        body.insert(0, _shared_symbol())
    return ModuleOp([GpuModuleOp("kernels", Region(Block(body)))])


def _shared_symbol() -> llvm.GlobalOp:
    """All of the block's shared memory; the launch says how much."""
    none = llvm.LLVMArrayType(IntAttr(0), i8)
    return llvm.GlobalOp(
        none, SHARED_SYMBOL, llvm.LinkageAttr("external"), addr_space=3, alignment=1024, unnamed_addr=0
    )


def shared_address(size: int, align: int) -> SSAValue:
    """Reserves bytes of shared memory for the whole kernel. Returns a pointer to them."""
    trace = current()
    start = -(-trace.shared_bytes // align) * align
    trace.shared_bytes = start + size
    where = caller()
    place = f"{where.filename.data}:{where.line.data}"
    before = sum(name.endswith(f" of {place}") for _, _, name in trace.shared)
    trace.shared.append((start, size, f"the shared tensor{f' {before + 1}' if before else ''} of {place}"))
    builder = Emitter(InsertPoint.at_start(trace.entry))
    if trace.shared_base is None:
        trace.shared_base = builder.insert(llvm.AddressOfOp(SHARED_SYMBOL, SHARED)).result
        builder.insertion_point = InsertPoint.at_start(trace.entry)
    owner = trace.shared_base.owner
    assert isinstance(owner, Operation)
    builder.insertion_point = InsertPoint.after(owner)
    return builder.insert(llvm.GEPOp(trace.shared_base, [start], i8, result_type=SHARED)).result


@contextlib.contextmanager
def when(condition: SSAValue) -> Generator[None]:
    """What stands below runs only where the condition, an i1, is true."""
    trace, block = current(), Block()
    with trace.inside(block):
        yield
        trace.insert(scf.YieldOp())
    trace.insert(scf.IfOp(condition, [], Region(block)))
