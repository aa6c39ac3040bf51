// GemmExecutor<TA, TB, TC>: C = A B with a compiled kernel.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "kernel_executor.hpp"

namespace cute_runtime {

// How a GEMM kernel was compiled. A block of `threads` threads computes a tile of `m` x `n`; the grid has cdiv(N, n)
// blocks in x and cdiv(M, m) in y. `use_tma`: A and B are passed as TMA descriptors of boxes m x k and k x n.
struct GemmTile {
  std::uint32_t m = 128, n = 128, k = 32;
  unsigned threads = 128;
  unsigned shared_bytes = 0;
  bool use_tma = false;
  CUtensorMapSwizzle swizzle_a = CU_TENSOR_MAP_SWIZZLE_NONE;
  CUtensorMapSwizzle swizzle_b = CU_TENSOR_MAP_SWIZZLE_NONE;
};

// A is (M, K), B is (K, N), C is (M, N); all are row-major and without gaps. The kernel's parameters are A, B, C and M,
// N, K as 32-bit integers.
template <class TA, class TB, class TC>
class GemmExecutor {
 public:
  // Throws Error if a size is not positive or the kernel has other parameters.
  GemmExecutor(KernelExecutor kernel, std::int32_t m, std::int32_t n, std::int32_t k, GemmTile tile = {})
      : kernel_(std::move(kernel)), m_(m), n_(n), k_(k), tile_(tile) {
    if (m < 1 || n < 1 || k < 1) throw Error(kernel_.symbol() + ": " + sizes() + ": sizes must be positive");
    if (tile.m == 0 || tile.n == 0 || tile.k == 0) throw Error(kernel_.symbol() + ": a tile has no size of zero");
  }

  // Launches C = A B on a stream. Throws Error if a buffer has another size.
  void operator()(const DeviceBuffer<TA>& a, const DeviceBuffer<TB>& b, DeviceBuffer<TC>& c,
                  CUstream stream = nullptr) {
    fits("A", a.size(), m_, k_);
    fits("B", b.size(), k_, n_);
    fits("C", c.size(), m_, n_);
    const LaunchConfig config{{cdiv(n_, tile_.n), cdiv(m_, tile_.m)}, {tile_.threads}, tile_.shared_bytes, stream, {}};
    if (!tile_.use_tma) {
      kernel_.launch(config, a, b, c, m_, n_, k_);
      return;
    }
    const auto wide = [](std::int32_t size) { return static_cast<std::uint64_t>(size); };
    kernel_.launch(config,
                   TMADescriptor::matrix<TA>(a.address(), wide(m_), wide(k_), tile_.m, tile_.k, tile_.swizzle_a),
                   TMADescriptor::matrix<TB>(b.address(), wide(k_), wide(n_), tile_.k, tile_.n, tile_.swizzle_b), c,
                   m_, n_, k_);
  }
  void synchronize(CUstream stream = nullptr) const { kernel_.synchronize(stream); }

 private:
  static unsigned cdiv(std::int32_t size, std::uint32_t tile) { return (static_cast<unsigned>(size) + tile - 1) / tile; }
  std::string sizes() const {
    return "M=" + std::to_string(m_) + ", N=" + std::to_string(n_) + ", K=" + std::to_string(k_);
  }
  void fits(const char* name, std::size_t found, std::int32_t rows, std::int32_t columns) const {
    const std::size_t wanted = static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
    if (found != wanted) {
      throw Error(kernel_.symbol() + ": " + name + " has " + std::to_string(found) + " elements, but " + sizes() +
                  " needs " + std::to_string(wanted));
    }
  }

  KernelExecutor kernel_;
  std::int32_t m_, n_, k_;
  GemmTile tile_;
};

}  // namespace cute_runtime
