// KernelExecutor: a kernel of a cubin or of PTX, loaded and ready to be launched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "array.hpp"
#include "device.hpp"
#include "device_buffer.hpp"
#include "launch_config.hpp"
#include "tma_descriptor.hpp"

namespace cute_runtime {

namespace detail {

// The parameters that an argument becomes: mostly one.
template <class T>
std::tuple<T> parameters(const T& value) {
  static_assert(std::is_trivially_copyable<T>::value, "kernels take numbers, addresses and structures of these");
  return {value};
}
template <class T>
std::tuple<CUdeviceptr> parameters(const DeviceBuffer<T>& buffer) {
  return {buffer.address()};
}
inline std::tuple<CUtensorMap> parameters(const TMADescriptor& descriptor) { return {descriptor.map()}; }

template <class T, std::size_t Rank, std::size_t... I>
auto array_parameters(const Array<T, Rank>& array, std::index_sequence<I...>) {
  return std::make_tuple(array.address, array.sizes[I]..., array.strides[I]...);
}
template <class T, std::size_t Rank>
auto parameters(const Array<T, Rank>& array) {
  return array_parameters(array, std::make_index_sequence<Rank>());
}

}  // namespace detail

class KernelExecutor {
 public:
  // A cubin, or PTX, which the driver then compiles; `symbol`: the kernel's name in it. Throws Error with the driver's
  // log if it cannot be loaded.
  KernelExecutor(Device device, std::string image, std::string symbol)
      : device_(std::move(device)), symbol_(std::move(symbol)), module_(std::make_shared<Module>(device_, image, symbol_)) {
    check(driver().cuModuleGetFunction(&function_, module_->handle, symbol_.c_str()), "cuModuleGetFunction",
          "looking for the kernel " + symbol_);
    std::size_t offset = 0, size = 0;
    while (driver().cuFuncGetParamInfo(function_, sizes_.size(), &offset, &size) == CUDA_SUCCESS) {
      sizes_.push_back(size);
    }
  }
  static KernelExecutor from_file(Device device, const std::string& path, std::string symbol) {
    return {std::move(device), read(path), std::move(symbol)};
  }
  // The bytes of a file. Throws Error.
  static std::string read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw Error(path + " cannot be read");
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  // Launches it. A DeviceBuffer is passed as its address, an Array as address, sizes and strides, a TMADescriptor as
  // its 128 bytes, any other argument as it is: give numbers the width that the kernel declares. Throws Error if the
  // number of parameters or the size of one differs from the kernel's, before anything is launched.
  template <class... Arguments>
  void launch(const LaunchConfig& config, const Arguments&... arguments) {
    auto values = std::tuple_cat(detail::parameters(arguments)...);
    std::apply(
        [&](auto&... value) {
          void* addresses[] = {static_cast<void*>(&value)..., nullptr};
          check_parameters({sizeof(value)...});
          start(config, addresses);
        },
        values);
  }
  void synchronize(CUstream stream = nullptr) const { device_.synchronize(stream); }

  const Device& device() const { return device_; }
  const std::string& symbol() const { return symbol_; }
  const std::vector<std::size_t>& parameter_sizes() const { return sizes_; }  // bytes

 private:
  struct Module {
    Module(const Device& on, const std::string& image, const std::string& symbol) : device(on) {
      device.make_current();
      std::vector<char> log(8192);
      CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
      void* values[] = {log.data(), reinterpret_cast<void*>(static_cast<std::uintptr_t>(log.size()))};
      const CUresult status = driver().cuModuleLoadDataEx(&handle, image.c_str(), 2, options, values);
      const std::string said = log.data();
      check(status, "cuModuleLoadDataEx",
            "loading " + symbol + " on " + device.name() + ", " + device.arch().name() + (said.empty() ? "" : "\n" + said));
    }
    ~Module() {
      try {
        device.make_current();
      } catch (const Error&) {  // the context is lost, and its modules with it
        return;
      }
      driver().cuModuleUnload(handle);
    }
    Module(const Module&) = delete;
    Module& operator=(const Module&) = delete;

    Device device;
    CUmodule handle = nullptr;
  };

  void check_parameters(std::initializer_list<std::size_t> given) const {
    if (given.size() != sizes_.size()) {
      throw Error(symbol_ + " has " + std::to_string(sizes_.size()) + " parameters, but was given " +
                  std::to_string(given.size()));
    }
    std::size_t index = 0;
    for (const std::size_t size : given) {
      if (size != sizes_[index]) {
        throw Error(symbol_ + ": parameter " + std::to_string(index) + " has " + std::to_string(sizes_[index]) +
                        " bytes, but was given " + std::to_string(size),
                    "pass a number of the declared width, such as std::int32_t{3}");
      }
      ++index;
    }
  }

  void start(const LaunchConfig& config, void** addresses) {
    config.validate(symbol_);
    device_.make_current();
    if (config.shared_bytes > allowed_) {
      check(driver().cuFuncSetAttribute(function_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                        static_cast<int>(config.shared_bytes)),
            "cuFuncSetAttribute", "asking for " + std::to_string(config.shared_bytes) + " bytes of shared memory for " + symbol_);
      allowed_ = config.shared_bytes;
    }
    CUlaunchAttribute attributes[2] = {};
    unsigned count = 0;
    if (config.overlaps) {
      attributes[count].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
      attributes[count++].value.programmaticStreamSerializationAllowed = 1;
    }
    if (config.cluster.x * config.cluster.y * config.cluster.z > 1) {
      attributes[count].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
      attributes[count++].value.clusterDim = {config.cluster.x, config.cluster.y, config.cluster.z};
    }
    CUlaunchConfig made = {};
    made.gridDimX = config.grid.x, made.gridDimY = config.grid.y, made.gridDimZ = config.grid.z;
    made.blockDimX = config.block.x, made.blockDimY = config.block.y, made.blockDimZ = config.block.z;
    made.sharedMemBytes = config.shared_bytes;
    made.hStream = config.stream;
    made.attrs = attributes;
    made.numAttrs = count;
    check(driver().cuLaunchKernelEx(&made, function_, addresses, nullptr), "cuLaunchKernelEx", "launching " + symbol_);
  }

  Device device_;
  std::string symbol_;
  std::shared_ptr<Module> module_;
  CUfunction function_ = nullptr;
  std::vector<std::size_t> sizes_;
  unsigned allowed_ = 48 * 1024;  // bytes of dynamic shared memory that every kernel may have
};

}  // namespace cute_runtime
