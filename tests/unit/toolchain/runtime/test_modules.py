"""Loading cubins, and which pair an error names, with a fake driver."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cuda.bindings import driver

from toolchain.bundles.bundle import BundleEntry, FileRef
from toolchain.contract.artifact import tile_ir
from toolchain.contract.entry import EntrySpec
from toolchain.errors import DeviceError, DriverTooOld, WrongTarget
from toolchain.runtime import GPU
from toolchain.runtime.modules import Modules

from .fake_driver import FakeDriver

BUNDLE: Any = SimpleNamespace(read=lambda file: file.sha256.encode())
GELU = EntrySpec("gelu_f32", "gelu", "py", "f32", grid=("N", "1", "1"))
CUBINS = {name: FileRef(Path(f"gelu.{name}"), f"cubin {name}") for name in ("sm_90", "sm_100")}
ENTRY = BundleEntry(GELU, FileRef(Path("gelu"), "gelu"), tile_ir(b"", "13.4").form, CUBINS)


class Device:
    """An H200 of a fake driver."""

    def __init__(self, fake: FakeDriver) -> None:
        self.gpu = GPU(0, "NVIDIA H200", (9, 0), 132, 141 * 2**30)
        self.driver: Any = fake
        self.undone: list[str] = []

    def ask(self, call: str, *args: Any, doing: str = "") -> Any:
        from toolchain.runtime.driver import check

        return check(call, getattr(self.driver, call)(*args), doing)

    def undo(self, call: str, handle: Any) -> None:
        del handle
        self.undone.append(call)


def test_a_cubin_is_loaded_once() -> None:
    device, modules = Device(FakeDriver()), Modules()
    for _ in range(2):
        modules.function(device, BUNDLE, ENTRY, "sm_90")
    assert device.driver.names() == ["cuModuleLoadData", "cuModuleGetFunction", "cuModuleGetFunction"]
    assert device.undone == ["cuModuleUnload"]


@pytest.mark.parametrize(
    ("status", "target", "kind", "said", "hint"),
    [
        (
            "NO_BINARY_FOR_GPU", "sm_100", WrongTarget,
            "this cubin for sm_100 does not run on sm_90, NVIDIA H200 has compute capability 9.0: cuModuleLoadData",
            "compile the bundle again with --target sm_90",
        ),
        (
            "UNSUPPORTED_PTX_VERSION", "sm_90", DriverTooOld,
            "the driver offers CUDA 12.9, which does not load this cubin for sm_90 (needs driver 580 or newer)",
            "install NVIDIA driver 580 or newer, or run on the CPU",
        ),
        ("INVALID_IMAGE", "sm_90", DeviceError, "CUDA_ERROR_INVALID_IMAGE (200)", None),
    ],
)  # fmt: skip
def test_a_refused_cubin_names_the_pair(
    status: str, target: str, kind: type[DeviceError], said: str, hint: str | None
) -> None:
    fake = FakeDriver()
    fake.failing = {"cuModuleLoadData"}
    fake.statuses = {"cuModuleLoadData": getattr(driver.CUresult, f"CUDA_ERROR_{status}")}
    fake.values = {"cuDriverGetVersion": 12090}
    with pytest.raises(DeviceError) as caught:
        Modules().function(Device(fake), BUNDLE, ENTRY, target)
    assert type(caught.value) is kind and said in str(caught.value) and caught.value.hint == hint
