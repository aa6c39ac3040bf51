// Array<T, Rank>: an array as kernels of a bundle take it: its address, its sizes and its strides.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "device_buffer.hpp"
#include "types.hpp"

namespace cute_runtime {

// Owns no memory. The calling convention passes it as a pointer, Rank sizes and Rank strides, both 32-bit; strides are
// in elements.
template <class T, std::size_t Rank>
struct Array {
  CUdeviceptr address = 0;
  std::array<std::int32_t, Rank> sizes{};
  std::array<std::int32_t, Rank> strides{};

  // An array of these sizes without gaps, the last dimension contiguous, from `offset` elements of the buffer on.
  // Throws Error if the buffer is too small.
  static Array of(const DeviceBuffer<T>& buffer, const std::array<std::int32_t, Rank>& sizes, std::size_t offset = 0) {
    Array made{buffer.address() + offset * sizeof(T), sizes, {}};
    std::int64_t step = 1;
    for (std::size_t i = Rank; i-- > 0;) {
      if (sizes[i] < 0) throw Error("an array has a size of " + std::to_string(sizes[i]));
      if (step > std::numeric_limits<std::int32_t>::max()) throw Error("strides must be below 2^31");
      made.strides[i] = static_cast<std::int32_t>(step);
      step *= sizes[i] > 0 ? sizes[i] : 1;
    }
    if (offset + made.count() > buffer.size()) {
      throw Error("an array of " + std::to_string(made.count()) + " elements from element " + std::to_string(offset) +
                  " on does not fit into a buffer of " + std::to_string(buffer.size()));
    }
    return made;
  }

  std::size_t count() const {  // elements
    std::size_t product = 1;
    for (const std::int32_t size : sizes) product *= static_cast<std::size_t>(size);
    return product;
  }
  // True if no two elements have a gap between them.
  bool contiguous() const {
    if (count() == 0) return true;
    std::int64_t step = 1;
    for (std::size_t i = Rank; i-- > 0;) {
      if (sizes[i] > 1 && strides[i] != step) return false;
      step *= sizes[i];
    }
    return true;
  }
  // True if the address is a multiple of `bytes`.
  bool address_aligned(std::size_t bytes) const { return address % bytes == 0; }
  // True if the address and all strides but the last are multiples of `bytes`.
  bool aligned(std::size_t bytes) const {
    for (std::size_t i = 0; i + 1 < Rank; ++i) {
      if (static_cast<std::size_t>(strides[i]) * sizeof(T) % bytes != 0) return false;
    }
    return address_aligned(bytes);
  }
};

}  // namespace cute_runtime
