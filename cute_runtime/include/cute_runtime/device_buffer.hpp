// DeviceBuffer<T>: memory of a GPU that one object owns.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include "device.hpp"

namespace cute_runtime {

// Can be moved, not copied: a copy of memory is always a call that says so. Copies run in order on a stream; those to
// the host wait until they are done, and so do those from the host, whose memory may go away.
template <class T>
class DeviceBuffer {
  static_assert(std::is_trivially_copyable<T>::value, "elements are copied byte for byte");

 public:
  // Memory for `count` elements, with undefined values. Throws Error if the GPU has no room.
  DeviceBuffer(Device device, std::size_t count) : device_(std::move(device)), size_(count) {
    device_.make_current();
    check(driver().cuMemAlloc(&address_, count == 0 ? 1 : count * sizeof(T)), "cuMemAlloc",
          "allocating " + std::to_string(count * sizeof(T)) + " bytes on " + device_.name());
  }
  // A copy of the host's elements.
  DeviceBuffer(Device device, const std::vector<T>& elements) : DeviceBuffer(std::move(device), elements.size()) {
    copy_from(elements);
  }
  ~DeviceBuffer() { release(); }

  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : device_(other.device_), address_(std::exchange(other.address_, 0)), size_(std::exchange(other.size_, 0)) {}
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    if (this != &other) {
      release();
      device_ = other.device_;
      address_ = std::exchange(other.address_, 0);
      size_ = std::exchange(other.size_, 0);
    }
    return *this;
  }

  CUdeviceptr address() const { return address_; }
  std::size_t size() const { return size_; }  // elements
  std::size_t size_bytes() const { return size_ * sizeof(T); }
  const Device& device() const { return device_; }

  void copy_from(const std::vector<T>& elements, CUstream stream = nullptr) {
    same_size(elements.size());
    device_.make_current();
    check(driver().cuMemcpyHtoDAsync(address_, elements.data(), size_bytes(), stream), "cuMemcpyHtoDAsync");
    device_.synchronize(stream);
  }
  void copy_to(std::vector<T>& elements, CUstream stream = nullptr) const {
    same_size(elements.size());
    device_.make_current();
    check(driver().cuMemcpyDtoHAsync(elements.data(), address_, size_bytes(), stream), "cuMemcpyDtoHAsync");
    device_.synchronize(stream);
  }
  std::vector<T> to_host(CUstream stream = nullptr) const {
    std::vector<T> elements(size_);
    copy_to(elements, stream);
    return elements;
  }
  // Sets every byte, in order with the launches on the stream.
  void fill_bytes(unsigned char value, CUstream stream = nullptr) {
    device_.make_current();
    check(driver().cuMemsetD8Async(address_, value, size_bytes(), stream), "cuMemsetD8Async");
  }

 private:
  void same_size(std::size_t host) const {
    if (host != size_) {
      throw Error("a copy between " + std::to_string(host) + " elements on the host and " + std::to_string(size_) +
                  " on the GPU: the numbers must be equal");
    }
  }
  void release() noexcept {
    if (address_ == 0) return;
    try {
      device_.make_current();
    } catch (const Error&) {  // the context is lost, and its memory with it
      return;
    }
    driver().cuMemFree(address_);
  }

  Device device_;
  CUdeviceptr address_ = 0;
  std::size_t size_ = 0;
};

}  // namespace cute_runtime
