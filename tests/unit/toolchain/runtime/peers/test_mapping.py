"""Memory of several GPUs in one range of addresses: what is asked of the driver, and given back."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from toolchain.errors import DeviceError
from toolchain.runtime.cuda import CudaExecutor
from toolchain.runtime.peers.mapping import granularity, map_peers

from .conftest import PAGE, MappingDriver

Executors = Callable[[Sequence[int]], list[CudaExecutor]]
MADE = ("cuMemRelease", "cuMemAddressFree", "cuMemUnmap")


def test_each_rank_gets_its_part_of_the_addresses(fake: MappingDriver, executors: Executors) -> None:
    devices = executors([0, 1])
    assert granularity(devices) == PAGE
    address, undo = map_peers(devices, PAGE)
    assert fake.made["cuMemUnmap"] == [address, address + PAGE]
    places = [int(args[1].location.id) for name, args in fake.calls if name == "cuMemCreate"]
    assert places == [0, 1]
    ((_, access),) = [call for call in fake.calls if call[0] == "cuMemSetAccess"]
    assert (access[0], access[1], [int(one.location.id) for one in access[2]], access[3]) == (
        address, 2 * PAGE, [0, 1], 2,
    )  # fmt: skip
    undo()
    assert not any(fake.made[name] for name in MADE)


def test_ranks_that_share_a_gpu_name_it_once(fake: MappingDriver, executors: Executors) -> None:
    map_peers(executors([0, 0]), PAGE)
    ((_, access),) = [call for call in fake.calls if call[0] == "cuMemSetAccess"]
    assert access[3] == 1


@pytest.mark.parametrize("call", ["cuMemCreate", "cuMemSetAccess"])
def test_a_failure_gives_everything_back(call: str, fake: MappingDriver, executors: Executors) -> None:
    fake.failing.add(call)
    with pytest.raises(DeviceError, match=call):
        map_peers(executors([0, 1]), PAGE)
    assert not any(fake.made[name] for name in MADE)
