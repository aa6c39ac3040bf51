"""The front end's instructions: numbers of threads and blocks, barriers, asynchronous copies."""

from __future__ import annotations

from typing import Any

from xdsl.ir import SSAValue

from ..nvgpu import ARCH
from ..nvgpu.descriptor_ops import InstructionDescriptorOp, SmemDescriptorOp
from ..nvvm.dialect import READ, Barrier0Op, CpAsyncCommitGroupOp, CpAsyncWaitGroupOp
from ..nvvm.index import Index
from .trace import current
from .values import Scalar, number, ssa

WARP = 32


def _read(name: str) -> Index:
    return number(current().insert(READ[name]()).res)


def thread_idx() -> tuple[Index, Index, Index]:
    """The thread's number in its block, in x, y and z."""
    return _read("tid.x"), _read("tid.y"), _read("tid.z")


def block_idx() -> tuple[Index, Index, Index]:
    """The block's number in the grid, in x, y and z."""
    return _read("ctaid.x"), _read("ctaid.y"), _read("ctaid.z")


def grid_dim() -> tuple[Index, Index, Index]:
    """The number of blocks in x, y and z."""
    return _read("nctaid.x"), _read("nctaid.y"), _read("nctaid.z")


def sync_threads() -> None:
    """All threads of the block wait for each other."""
    current().insert(Barrier0Op())


def sync_cluster() -> None:
    """All threads of the cluster's blocks wait for each other."""
    instruction("cluster.arrive", atom="release")
    instruction("cluster.wait")


def cp_async_commit_group() -> None:
    """The thread's asynchronous copies so far become a group."""
    current().insert(CpAsyncCommitGroupOp())


def cp_async_wait_group(n: int) -> None:
    """Waits until at most n groups of the thread are under way."""
    current().insert(CpAsyncWaitGroupOp(n))


def grid_wait() -> None:
    """Waits for the launch before this one, if the two overlap. The kernel is then one that waits."""
    current().waits = True
    instruction("grid_wait")


def tanh(value: Scalar) -> Scalar:
    """tanh of an f32, with an error up to 2^-11."""
    return Scalar(instruction("tanh", value, results=[value.type])[0])


def warp_sum(value: Scalar) -> Scalar:
    """The sum of an f32 over the threads of a warp, in each of them."""
    lanes = WARP // 2
    while lanes:
        value = value + Scalar(instruction("shuffle.xor", value, results=[value.type], n=lanes)[0])
        lanes //= 2
    return value


def instruction(name: str, *args: Any, results: Any = (), atom: str = "", n: int | None = None) -> Any:
    """An operation `cute_nvgpu.arch.<name>`."""
    return current().insert(ARCH[name]([ssa(arg) for arg in args], results, atom, n)).res


def smem_descriptor(
    pointer: SSAValue, generation: str, *, stride: int, leading: int = 16, swizzle: int = 128
) -> SSAValue:
    """The descriptor of an operand in shared memory; sizes in bytes. `generation`: `sm_90` or `sm_100`."""
    made = SmemDescriptorOp(pointer, generation, leading=leading, stride=stride, swizzle=swizzle)
    return current().insert(made).res


def instruction_descriptor(atom: str, majors: str = "kk") -> SSAValue:
    """The instruction descriptor of a tcgen05 atom. `majors`: what lies side by side in A and in B, `k` or `m`."""
    return current().insert(InstructionDescriptorOp(atom, majors)).res
