// All of cute_runtime: compiled kernels in C++17 over the CUDA driver API alone.
#pragma once

#include "arch.hpp"
#include "array.hpp"
#include "bundle.hpp"
#include "device.hpp"
#include "device_buffer.hpp"
#include "driver.hpp"
#include "gemm_executor.hpp"
#include "kernel_executor.hpp"
#include "launch_config.hpp"
#include "tma_descriptor.hpp"
#include "types.hpp"
