// The CUDA driver API, loaded when it is first needed: a program links against no CUDA library, and starts on a machine
// without a driver too. Types and prototypes are those of the toolkit's cuda.h.
#pragma once

#include <cuda.h>
#include <dlfcn.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace cute_runtime {

// An error of this library or of the driver. `code`: the driver's status; CUDA_SUCCESS where no call of it failed.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& what, const std::string& next = "", CUresult status = CUDA_SUCCESS)
      : std::runtime_error(next.empty() ? what : what + "\n  next: " + next), code(status) {}

  CUresult code;
};

// cuda.h renames some functions with macros (cuMemAlloc is cuMemAlloc_v2): the names below are expanded before they are
// used, so that the symbol that is loaded has the prototype that is declared.
#define CUTE_RUNTIME_DRIVER_FUNCTIONS(each)                                                                         \
  each(cuInit) each(cuGetErrorName) each(cuGetErrorString) each(cuDeviceGet) each(cuDeviceGetCount)                 \
  each(cuDeviceGetName) each(cuDeviceGetAttribute) each(cuDeviceTotalMem) each(cuDevicePrimaryCtxRetain)            \
  each(cuDevicePrimaryCtxRelease) each(cuCtxSetCurrent) each(cuStreamSynchronize) each(cuMemAlloc) each(cuMemFree)  \
  each(cuMemcpyHtoDAsync) each(cuMemcpyDtoHAsync) each(cuMemsetD8Async) each(cuModuleLoadDataEx)                    \
  each(cuModuleUnload) each(cuModuleGetFunction) each(cuFuncSetAttribute) each(cuFuncGetParamInfo)                  \
  each(cuLaunchKernelEx) each(cuTensorMapEncodeTiled)

struct Driver {
#define CUTE_RUNTIME_DECLARE(name) decltype(&::name) name = nullptr;
  CUTE_RUNTIME_DRIVER_FUNCTIONS(CUTE_RUNTIME_DECLARE)
#undef CUTE_RUNTIME_DECLARE
};

namespace detail {

inline Driver load_driver() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw Error(std::string("no NVIDIA driver on this machine: ") + dlerror(), "check that `nvidia-smi` lists a GPU",
                CUDA_ERROR_NO_DEVICE);
  }
  Driver loaded;
  const auto load = [library](auto& function, const char* name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
    if (function == nullptr) {
      throw Error(std::string("the NVIDIA driver has no ") + name, "install driver 550 (CUDA 12.4) or newer",
                  CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
    }
  };
#define CUTE_RUNTIME_LOAD_EXPANDED(name) load(loaded.name, #name);
#define CUTE_RUNTIME_LOAD(name) CUTE_RUNTIME_LOAD_EXPANDED(name)
  CUTE_RUNTIME_DRIVER_FUNCTIONS(CUTE_RUNTIME_LOAD)
#undef CUTE_RUNTIME_LOAD
#undef CUTE_RUNTIME_LOAD_EXPANDED
  if (const CUresult status = loaded.cuInit(0); status != CUDA_SUCCESS) {
    throw Error("cuInit failed: status " + std::to_string(status), "check that `nvidia-smi` lists a GPU", status);
  }
  return loaded;
}

}  // namespace detail

// The driver, loaded and initialised. Throws Error where there is none.
inline const Driver& driver() {
  static const Driver loaded = detail::load_driver();
  return loaded;
}

// Throws the Error that a driver call's status stands for. `doing`: the purpose of the call.
inline void check(CUresult status, const char* call, const std::string& doing = "") {
  if (status == CUDA_SUCCESS) return;
  const char* name = nullptr;
  const char* meaning = nullptr;
  driver().cuGetErrorName(status, &name);
  driver().cuGetErrorString(status, &meaning);
  throw Error(std::string(call) + " failed" + (doing.empty() ? "" : " while " + doing) + ": " +
                  (name == nullptr ? "unknown status" : name) + " (" + std::to_string(status) + ")" +
                  (meaning == nullptr ? "" : std::string(": ") + meaning),
              "", status);
}

#undef CUTE_RUNTIME_DRIVER_FUNCTIONS

}  // namespace cute_runtime
