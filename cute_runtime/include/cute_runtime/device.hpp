// Device: a GPU and its primary context, which stays while a Device, buffer or kernel of it lives.
#pragma once

#include <memory>
#include <string>

#include "arch.hpp"
#include "driver.hpp"

namespace cute_runtime {

class Device {
 public:
  // The GPU of that number, as the driver counts. Throws Error if there is none.
  explicit Device(int index = 0) : state_(std::make_shared<State>(index)) {}

  int index() const { return state_->index; }
  std::string name() const {
    char text[128] = {};
    check(driver().cuDeviceGetName(text, sizeof text, state_->device), "cuDeviceGetName");
    return text;
  }
  Arch arch() const {
    return {attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
            attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)};
  }
  int multiprocessors() const { return attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT); }
  std::size_t memory() const {  // bytes
    std::size_t total = 0;
    check(driver().cuDeviceTotalMem(&total, state_->device), "cuDeviceTotalMem");
    return total;
  }
  int attribute(CUdevice_attribute which) const {
    int value = 0;
    check(driver().cuDeviceGetAttribute(&value, which, state_->device), "cuDeviceGetAttribute");
    return value;
  }

  // Makes the context the calling thread's; every call of this library does so itself.
  void make_current() const { check(driver().cuCtxSetCurrent(state_->context), "cuCtxSetCurrent"); }
  // Waits for what was launched on a stream. Throws Error for what went wrong there.
  void synchronize(CUstream stream = nullptr) const {
    make_current();
    check(driver().cuStreamSynchronize(stream), "cuStreamSynchronize");
  }

 private:
  struct State {
    explicit State(int number) : index(number) {
      int count = 0;
      check(driver().cuDeviceGetCount(&count), "cuDeviceGetCount");
      if (index < 0 || index >= count) {
        throw Error("there is no GPU " + std::to_string(index) + ": the driver lists " + std::to_string(count),
                    "see `nvidia-smi -L`", CUDA_ERROR_INVALID_DEVICE);
      }
      check(driver().cuDeviceGet(&device, index), "cuDeviceGet");
      check(driver().cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    }
    ~State() { driver().cuDevicePrimaryCtxRelease(device); }
    State(const State&) = delete;
    State& operator=(const State&) = delete;

    int index;
    CUdevice device = 0;
    CUcontext context = nullptr;
  };

  std::shared_ptr<const State> state_;
};

}  // namespace cute_runtime
