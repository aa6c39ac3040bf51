"""How a grid of blocks is launched, as the driver takes it."""

from __future__ import annotations

from typing import Any

Dims = tuple[int, int, int]


def configured(
    driver: Any, stream: Any, grid: Dims, block: Dims, shared_bytes: int, *, ahead: bool, together: int
) -> Any:  # fmt: skip
    """A CUlaunchConfig of cuda.bindings.driver. See CudaExecutor.launch_config."""
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = grid
    config.blockDimX, config.blockDimY, config.blockDimZ = block
    config.sharedMemBytes = shared_bytes
    config.hStream = stream
    if together:
        cluster, cooperative = driver.CUlaunchAttribute(), driver.CUlaunchAttribute()
        cluster.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        cluster.value.clusterDim.x, cluster.value.clusterDim.y, cluster.value.clusterDim.z = together, 1, 1
        cooperative.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
        cooperative.value.cooperative = 1
        config.attrs, config.numAttrs = [cluster, cooperative], 2
    elif ahead:  # not of a cooperative grid: the driver refuses both together (CUDA_ERROR_INVALID_VALUE)
        attribute = driver.CUlaunchAttribute()
        attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
        attribute.value.programmaticStreamSerializationAllowed = 1
        config.attrs, config.numAttrs = [attribute], 1
    return config
