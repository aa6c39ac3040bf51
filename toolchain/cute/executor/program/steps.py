"""What a warp does at a step that is no instruction of its own: arithmetic, addresses, loads and stores, jumps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.dialects import llvm
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation

from ...nvgpu.descriptor_ops import LARGEST, SmemDescriptorOp
from ..instructions import tensor_memory
from ..state.access import LOCAL_BASE, load, load_local, store, store_local
from ..state.block import Warp
from ..state.call import moved
from ..state.clocks import GENERIC
from ..state.findings import MissingWait, NoSemantics
from .elementwise import select
from .undefined import Check
from .values import kind_of, size_of, space_of

UNIT = 16  # bytes, in a descriptor of shared memory


def nothing(warp: Warp) -> None:
    """A step that only marks a place."""


def leave(warp: Warp) -> None:
    """The warp ends, and with the last one of a block its shared memory."""
    block, store = warp.block, warp.last_store
    if store is not None and block.clocks.seen[GENERIC, warp.agent_number, store.agent] < store.time:
        warp.fail(MissingWait, f"the warp ends while {block.steps[store.step]} may still read shared memory")
    warp.done = True
    if all(other.done for other in block.warps):
        tensor_memory.at_end(warp)


def enter_loop(warp: Warp) -> None:
    """The threads that enter a loop leave it together."""
    warp.masks.append((warp.active, None))


def leave_branch(warp: Warp) -> None:
    """All threads go on that went into the branch or the loop."""
    warp.set_active(warp.masks.pop()[0])


def jump(target: int) -> Callable[[Warp], None]:
    """The warp goes on at another step."""

    def run(warp: Warp) -> None:
        warp.pc = target - 1

    return run


def move(sources: list[int], targets: list[int], *, fresh: bool = False) -> Callable[[Warp], None]:
    """Copies registers in the active threads; with `fresh`, in all."""

    def run(warp: Warp) -> None:
        values = [(warp.env[source], warp.pending.get(source)) for source in sources]
        for target, (value, ticket) in zip(targets, values, strict=True):
            old = warp.env[target]
            if fresh or warp.whole or old is None:
                warp.env[target] = value
            else:
                warp.env[target] = select(warp.active, *np.broadcast_arrays(value, old))
            warp.pending.pop(target, None)
            if ticket is not None:
                warp.pending[target] = ticket

    return run


def computed(
    function: Callable[..., Any], ins: list[int], out: int, check: Check | None = None
) -> Callable[[Warp], None]:
    """A register gets what a function makes of others. `check`: raises a finding for their values."""
    if check is not None:

        def checked(warp: Warp) -> None:
            values = [warp.env[i] for i in ins]
            check(warp, values)
            warp.env[out] = function(*values)

        return checked
    if len(ins) == 2:
        left, right = ins

        def binary(warp: Warp) -> None:
            env = warp.env
            env[out] = function(env[left], env[right])

        return binary

    def run(warp: Warp) -> None:
        warp.env[out] = function(*(warp.env[i] for i in ins))

    return run


def descriptor(op: SmemDescriptorOp) -> Callable[[Any], Any]:
    """The word that says where an operand lies in shared memory."""

    def made(start: Any) -> Any:
        return start % (LARGEST + 1) // UNIT | np.array([op.fields]).astype(np.uint64).view(np.int64)

    return made


def special_register(name: str, out: int) -> Callable[[Warp], None]:
    """A register of the hardware, such as `tid.x`. Raises NoSemantics while the kernel runs."""
    register, _, axis = name.rpartition(".")
    number = "xyz".find(axis) if axis in ("x", "y", "z") else 0

    def run(warp: Warp) -> None:
        block = warp.block
        x, y, _ = block.dims
        if name == "laneid":
            warp.env[out] = warp.lanes.astype(np.int32)
            return
        if register == "tid":
            thread = (warp.threads % x, warp.threads // x % y, warp.threads // (x * y))[number]
            warp.env[out] = thread.astype(np.int32)
            return
        cluster = block.cluster
        known = {
            "ntid": block.dims, "ctaid": block.place, "nctaid": block.grid,
            "clusterid": [at // size for at, size in zip(block.place, cluster.dims, strict=True)],
            "cluster.ctaid": [at % size for at, size in zip(block.place, cluster.dims, strict=True)],
            "cluster": [{"ctarank": block.rank, "nctarank": len(cluster.blocks)}.get(axis, 0)],
        }  # fmt: skip
        if register not in known:
            raise NoSemantics(f"the executor has no register {name}")
        warp.env[out] = np.array([known[register][number]], np.int32)

    return run


def gep(op: llvm.GEPOp, ins: list[int], out: int) -> Callable[[Warp], None]:
    """A pointer some elements further."""
    fixed, steps, kind = 0, list[tuple[int, int]](), op.elem_type
    dynamic = iter(ins[1:])
    for depth, number in enumerate(op.rawConstantIndices.iter_values()):
        if depth:
            assert isinstance(kind, llvm.LLVMArrayType)
            kind = kind.type
        if number == llvm.GEP_USE_SSA_VAL:
            steps.append((next(dynamic), size_of(kind)))
        else:
            fixed += int(number) * size_of(kind)
    base = ins[0]

    def run(warp: Warp) -> None:
        address = warp.env[base] + fixed if fixed else warp.env[base]
        for register, size in steps:
            address = address + warp.env[register].astype(np.int64) * size
        warp.env[out] = address

    return run


def _alignment(op: Operation) -> int:
    found = op.properties.get("alignment")
    return found.value.data if isinstance(found, IntegerAttr) else 0


def load_step(op: llvm.LoadOp, pointer: int, out: int) -> Callable[[Warp], None]:
    """A load from memory, or from registers that have an address."""
    kind, space, align = kind_of(op.results[0].type), space_of(op.operands[0].type), _alignment(op)
    width = kind.bytes

    def run(warp: Warp) -> None:
        addresses = warp.env[pointer]
        if space == 0 and addresses[0] >= LOCAL_BASE:
            data = load_local(warp, addresses, width, out)
        else:
            data = load(warp, space, addresses, width, align=align)
        warp.env[out] = kind.from_bytes(data)

    return run


def store_step(op: llvm.StoreOp, value: int, pointer: int) -> Callable[[Warp], None]:
    """A store to memory, or to registers that have an address."""
    kind, space, align = kind_of(op.value.type), space_of(op.ptr.type), _alignment(op)
    new = not moved(op.value)

    def run(warp: Warp) -> None:
        addresses, data = warp.env[pointer], kind.to_bytes(warp.env[value])
        if space == 0 and addresses[0] >= LOCAL_BASE:
            store_local(warp, addresses, data, value, computed=new)
        else:
            store(warp, space, addresses, data, align=align)

    return run
