# The target cute_runtime::cute_runtime. The one thing that it needs of a CUDA toolkit is cuda.h: set
# CUTE_RUNTIME_CUDA_INCLUDE_DIR to its folder if it is not found.
include(${CMAKE_CURRENT_LIST_DIR}/cute_runtimeTargets.cmake)
find_path(CUTE_RUNTIME_CUDA_INCLUDE_DIR cuda.h
  HINTS ${CUDAToolkit_INCLUDE_DIRS} $ENV{CUDA_PATH}/include $ENV{CUDA_HOME}/include
  PATHS /usr/local/cuda/include
  DOC "the folder of the CUDA driver API's cuda.h")
if(NOT CUTE_RUNTIME_CUDA_INCLUDE_DIR)
  set(cute_runtime_FOUND FALSE)
  set(cute_runtime_NOT_FOUND_MESSAGE
    "no cuda.h: install a CUDA toolkit or pip's nvidia-cuda-runtime, and set CUTE_RUNTIME_CUDA_INCLUDE_DIR")
  return()
endif()
target_include_directories(cute_runtime::cute_runtime SYSTEM INTERFACE ${CUTE_RUNTIME_CUDA_INCLUDE_DIR})
