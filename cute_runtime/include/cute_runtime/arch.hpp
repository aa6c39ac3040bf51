// Arch: what a kernel is compiled for, sm_90a, and what a GPU is, sm_90.
#pragma once

#include <string>
#include <tuple>

#include "driver.hpp"

namespace cute_runtime {

// `suffix`: 'a' for code of this one architecture, 'f' for code of its family, or '\0'.
struct Arch {
  int major = 0;
  int minor = 0;
  char suffix = '\0';

  // Reads "sm_90a". Throws Error for anything else.
  static Arch parse(const std::string& text) {
    const auto refuse = [&text] { return Error("no architecture is called '" + text + "'", "write it as sm_90a"); };
    if (text.rfind("sm_", 0) != 0) throw refuse();
    std::string digits = text.substr(3);
    Arch made;
    if (!digits.empty() && (digits.back() == 'a' || digits.back() == 'f')) {
      made.suffix = digits.back();
      digits.pop_back();
    }
    if (digits.size() < 2 || digits.size() > 3 || digits.find_first_not_of("0123456789") != std::string::npos) {
      throw refuse();
    }
    made.major = std::stoi(digits.substr(0, digits.size() - 1));
    made.minor = digits.back() - '0';
    return made;
  }

  std::string name() const {
    return "sm_" + std::to_string(major) + std::to_string(minor) + (suffix == '\0' ? "" : std::string(1, suffix));
  }

  // True if a cubin for this architecture runs on a GPU of that one. Without a suffix it runs on every GPU of the same
  // major version and at least its minor one; with 'a' on that architecture alone; with 'f' as without, which holds for
  // the families that exist: https://docs.nvidia.com/cuda/parallel-thread-execution, ".target".
  bool runs_on(const Arch& gpu) const {
    return major == gpu.major && (suffix == 'a' ? minor == gpu.minor : minor <= gpu.minor);
  }

  friend bool operator==(const Arch& a, const Arch& b) {
    return std::tie(a.major, a.minor, a.suffix) == std::tie(b.major, b.minor, b.suffix);
  }
  friend bool operator!=(const Arch& a, const Arch& b) { return !(a == b); }
};

}  // namespace cute_runtime
