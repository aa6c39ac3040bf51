/* A libcuda.so.1 without a GPU: memory is the host's, and what is launched is printed to standard output.
 *
 * A module's image is text: "params 8 4 4" makes every kernel of it have three parameters of these sizes; "broken" is an
 * image that does not load. STUB_FAILS names a call that fails as if memory ran out. */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static CUresult done(const char *call) {
  const char *fails = getenv("STUB_FAILS");
  return fails != NULL && strcmp(fails, call) == 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

typedef struct {
  char name[128];
  size_t count, sizes[64];
} Kernel;

static void shown(const char *label, const unsigned char *bytes, size_t size) {
  printf("%s", label);
  for (size_t i = size; i-- > 0;) printf("%02x", bytes[i]); /* as a little-endian number */
}

CUresult cuInit(unsigned flags) { (void)flags; return done("cuInit"); }
CUresult cuGetErrorName(CUresult status, const char **name) {
  *name = status == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_SOME";
  return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult status, const char **meaning) {
  *meaning = status == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : "some error";
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int *count) { *count = 1; return done("cuDeviceGetCount"); }
CUresult cuDeviceGet(CUdevice *device, int index) { *device = index; return done("cuDeviceGet"); }
CUresult cuDeviceGetName(char *name, int size, CUdevice device) {
  (void)device;
  snprintf(name, (size_t)size, "Stub");
  return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device) { (void)device; *bytes = 1 << 20; return CUDA_SUCCESS; }
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute which, CUdevice device) {
  (void)device;
  *value = which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9
           : which == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT   ? 132
                                                                 : 0;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  (void)device;
  printf("retain\n");
  *context = (CUcontext)1;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice device) { (void)device; printf("release\n"); return CUDA_SUCCESS; }
CUresult cuCtxSetCurrent(CUcontext context) { (void)context; return CUDA_SUCCESS; }
CUresult cuStreamSynchronize(CUstream stream) { (void)stream; return done("cuStreamSynchronize"); }
CUresult cuMemAlloc(CUdeviceptr *address, size_t bytes) {
  printf("alloc %zu\n", bytes);
  *address = (CUdeviceptr)aligned_alloc(256, (bytes + 255) / 256 * 256);
  return done("cuMemAlloc");
}
CUresult cuMemFree(CUdeviceptr address) { printf("free\n"); free((void *)address); return CUDA_SUCCESS; }
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
  (void)stream;
  memcpy((void *)to, from, bytes);
  return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
  (void)stream;
  memcpy(to, (void *)from, bytes);
  return CUDA_SUCCESS;
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  (void)stream;
  memset((void *)to, value, count);
  return CUDA_SUCCESS;
}
CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count, CUjit_option *options, void **values) {
  const char *text = image;
  for (unsigned i = 0; i < count && strncmp(text, "broken", 6) == 0; ++i) {
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER) strcpy(values[i], "line 3: no such instruction");
  }
  if (strncmp(text, "params", 6) != 0) return CUDA_ERROR_INVALID_IMAGE;
  Kernel *made = calloc(1, sizeof(Kernel));
  char *rest = (char *)text + 6, *end;
  for (size_t size; (size = strtoul(rest, &end, 10)), end != rest; rest = end) made->sizes[made->count++] = size;
  printf("load %zu parameters\n", made->count);
  *module = (CUmodule)made;
  return done("cuModuleLoadDataEx");
}
CUresult cuModuleUnload(CUmodule module) { printf("unload\n"); free(module); return CUDA_SUCCESS; }
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  snprintf(((Kernel *)module)->name, sizeof ((Kernel *)module)->name, "%s", name);
  *function = (CUfunction)module;
  return strcmp(name, "absent") == 0 ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute which, int value) {
  (void)function;
  if (which == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) printf("shared memory up to %d\n", value);
  return done("cuFuncSetAttribute");
}
CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *size) {
  const Kernel *kernel = (const Kernel *)function;
  if (index >= kernel->count) return CUDA_ERROR_INVALID_VALUE;
  *offset = 0;
  *size = kernel->sizes[index];
  return CUDA_SUCCESS;
}
CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra) {
  (void)extra;
  const Kernel *kernel = (const Kernel *)function;
  printf("launch %s grid %u,%u,%u block %u,%u,%u shared %u", kernel->name, config->gridDimX, config->gridDimY, config->gridDimZ,
         config->blockDimX, config->blockDimY, config->blockDimZ, config->sharedMemBytes);
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
      printf(" cluster %u", config->attrs[i].value.clusterDim.x);
    } else {
      printf(" attribute %d", (int)config->attrs[i].id);
    }
  }
  printf(" with");
  for (size_t i = 0; i < kernel->count; ++i) shown(" ", parameters[i], kernel->sizes[i]);
  printf("\n");
  return done("cuLaunchKernelEx");
}
CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
                                const cuuint64_t *sizes, const cuuint64_t *strides, const cuuint32_t *box,
                                const cuuint32_t *steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  (void)address;
  printf("encode type %d rank %u sizes", type, rank);
  for (unsigned i = 0; i < rank; ++i) printf(" %llu", (unsigned long long)sizes[i]);
  printf(" strides");
  for (unsigned i = 0; i + 1 < rank; ++i) printf(" %llu", (unsigned long long)strides[i]);
  printf(" box");
  for (unsigned i = 0; i < rank; ++i) printf(" %u/%u", box[i], steps[i]);
  printf(" interleave %d swizzle %d l2 %d fill %d\n", interleave, swizzle, promotion, fill);
  memset(map, 0x5a, sizeof *map);
  return done("cuTensorMapEncodeTiled");
}
