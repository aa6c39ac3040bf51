// What the headers that `tilestack export-cpp` writes are built from.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "array.hpp"
#include "kernel_executor.hpp"

namespace cute_runtime {

// The expressions of entries are Python's: divisions round down. They raise an Error for a division by zero.
inline std::int64_t floordiv(std::int64_t a, std::int64_t b) {
  if (b == 0) throw Error("an expression of an entry divides by zero");
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}
inline std::int64_t floormod(std::int64_t a, std::int64_t b) { return a - b * floordiv(a, b); }
inline std::int64_t cdiv(std::int64_t a, std::int64_t b) { return -floordiv(-a, b); }

// The number of rounds in which `sms` multiprocessors compute all tiles of a result, one tile each per round.
inline std::int64_t rounds(std::int64_t sms, std::int64_t rows, std::int64_t columns, std::int64_t tile_rows,
                           std::int64_t tile_columns) {
  return cdiv(cdiv(rows, tile_rows) * cdiv(columns, tile_columns), sms);
}

// The kernels of a device, each loaded once.
class Images {
 public:
  // Throws Error if the device does not run code for `target`, such as sm_90.
  Images(Device device, const std::string& target) : device_(std::move(device)) {
    if (!Arch::parse(target).runs_on(device_.arch())) {
      throw Error("these kernels are for " + target + ", " + device_.name() + " is " + device_.arch().name(),
                  "export them for " + device_.arch().name(), CUDA_ERROR_NO_BINARY_FOR_GPU);
    }
  }

  int multiprocessors() const { return device_.multiprocessors(); }
  // The kernel of that name, from the image that `read` returns when it is first needed.
  template <class Read>
  KernelExecutor& kernel(const std::string& symbol, Read read) {
    auto found = kernels_.find(symbol);
    if (found == kernels_.end()) found = kernels_.emplace(symbol, KernelExecutor(device_, read(), symbol)).first;
    return found->second;
  }
  // An embedded cubin as the text that a KernelExecutor takes.
  template <std::size_t Size>
  static std::string text(const unsigned char (&bytes)[Size]) {
    return {reinterpret_cast<const char*>(bytes), Size};
  }

 private:
  Device device_;
  std::map<std::string, KernelExecutor> kernels_;
};

// Launches a grid of an entry; an empty one, whose result is empty, is nothing to launch.
template <class... Arguments>
void launch_grid(KernelExecutor& kernel, const std::array<std::int64_t, 3>& grid, Dim3 block, unsigned shared_bytes,
                 CUstream stream, const Arguments&... arguments) {
  if (std::min({grid[0], grid[1], grid[2]}) == 0) return;
  const auto blocks = [&kernel](std::int64_t count) {
    if (count < 0 || count > 0x7fffffff) {
      throw Error(kernel.symbol() + ": a grid of " + std::to_string(count) + " blocks");
    }
    return static_cast<unsigned>(count);
  };
  kernel.launch({{blocks(grid[0]), blocks(grid[1]), blocks(grid[2])}, block, shared_bytes, stream}, arguments...);
}

// Why the entries of an op do not fit, one after the other.
class Refused {
 public:
  explicit Refused(std::string op) : op_(std::move(op)) {}

  // True if there is no reason why an entry does not fit.
  bool fits(const char* symbol, const std::string& why) {
    if (!why.empty()) reasons_ += std::string("\n  ") + symbol + ": " + why;
    return why.empty();
  }
  Error error() const { return Error(op_ + ": no entry fits:" + reasons_); }

 private:
  std::string op_, reasons_;
};

// Throws Error unless a dimension has the same size in two arrays.
inline void same_size(const char* op, const char* dim, std::int32_t size, std::int32_t wanted) {
  if (size != wanted) {
    throw Error(std::string(op) + ": " + dim + " is " + std::to_string(wanted) + " in one array and " +
                std::to_string(size) + " in another");
  }
}

// Throws Error unless the last dimension of an array is contiguous.
template <class T, std::size_t Rank>
void last_contiguous(const char* op, const char* name, const Array<T, Rank>& array) {
  if (array.sizes[Rank - 1] > 1 && array.strides[Rank - 1] != 1) {
    throw Error(std::string(op) + ": the last stride of " + name + " is " + std::to_string(array.strides[Rank - 1]) +
                    ": it must be 1",
                "copy it first");
  }
}

// Throws Error if a kernel that counts elements in `bits` bits cannot count to the last one of an array.
template <class T, std::size_t Rank>
void within_reach(const char* symbol, const char* name, const Array<T, Rank>& array, int bits) {
  if (array.count() == 0) return;
  std::int64_t last = 0;
  for (std::size_t i = 0; i < Rank; ++i) last += (std::int64_t{array.sizes[i]} - 1) * array.strides[i];
  if (last <= std::numeric_limits<std::int64_t>::max() >> (64 - bits)) return;
  throw Error(std::string(symbol) + ": the last element of " + name + " is " + std::to_string(last) +
                  " elements after the first, and this kernel counts them in " + std::to_string(bits) + " bits",
              "pass an array with smaller gaps, or in parts, or take another kernel source");
}

}  // namespace cute_runtime
