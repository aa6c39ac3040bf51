// LaunchConfig: how a kernel is launched, beside its arguments.
#pragma once

#include <string>

#include "driver.hpp"

namespace cute_runtime {

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};

// `grid`: blocks, or blocks of all clusters; `block`: threads; `cluster`: blocks of one cluster, (1, 1, 1) for none.
// `shared_bytes`: dynamic shared memory of a block. `overlaps`: the kernel may begin before the launch before it ends
// (programmatic dependent launch), so it must wait itself.
struct LaunchConfig {
  Dim3 grid{};
  Dim3 block{};
  unsigned shared_bytes = 0;
  CUstream stream = nullptr;
  Dim3 cluster{};
  bool overlaps = false;

  // Throws Error for what no GPU launches.
  void validate(const std::string& kernel) const {
    const auto shown = [](const Dim3& d) {
      return std::to_string(d.x) + " x " + std::to_string(d.y) + " x " + std::to_string(d.z);
    };
    if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535) {
      throw Error(kernel + ": a grid of " + shown(grid) + ": CUDA takes 1 to 2^31 - 1 x 65535 x 65535 blocks");
    }
    if (block.x == 0 || block.y == 0 || block.z == 0 || block.x > 1024 || block.y > 1024 || block.z > 64 ||
        block.x * block.y * block.z > 1024) {
      throw Error(kernel + ": a block of " + shown(block) + ": it has 1 to 1024 threads, at most 64 in z");
    }
    if (cluster.x == 0 || cluster.y == 0 || cluster.z == 0 || grid.x % cluster.x != 0 || grid.y % cluster.y != 0 ||
        grid.z % cluster.z != 0) {
      throw Error(kernel + ": clusters of " + shown(cluster) + " do not divide a grid of " + shown(grid));
    }
  }
};

}  // namespace cute_runtime
