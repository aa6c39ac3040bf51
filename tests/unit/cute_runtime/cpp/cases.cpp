// One case for each command-line word; an Error is printed. The stub prints what reaches the driver.
#include <cute_runtime/cute_runtime.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <type_traits>

using namespace cute_runtime;

static_assert(!std::is_copy_constructible<DeviceBuffer<float>>::value, "buffers are moved");
static_assert(!std::is_copy_assignable<DeviceBuffer<float>>::value, "buffers are moved");
static_assert(std::is_nothrow_move_constructible<DeviceBuffer<float>>::value, "buffers are moved");
static_assert(std::is_nothrow_move_assignable<DeviceBuffer<float>>::value, "buffers are moved");

namespace {

void device() {
  const Device gpu(0);
  std::cout << gpu.name() << " " << gpu.arch().name() << " " << gpu.multiprocessors() << " " << gpu.memory() << "\n";
}

void no_such_device() { Device(7); }

void arch() {
  for (const char* text : {"sm_80", "sm_90a", "sm_100f", "sm_103", "sm_120"}) {
    std::cout << text << " " << Arch::parse(text).name();
    for (const Arch gpu : {Arch{8, 9}, Arch{9, 0}, Arch{10, 0}, Arch{10, 3}}) {
      if (Arch::parse(text).runs_on(gpu)) std::cout << " on " << gpu.name();
    }
    std::cout << "\n";
  }
  for (const char* text : {"", "90", "sm_", "sm_9", "sm_90b", "sm_90A", "sm_9000", "compute_90"}) {
    try {
      std::cout << Arch::parse(text).name() << " was read\n";
    } catch (const Error&) {
      std::cout << "refused\n";
    }
  }
}

void buffers() {
  const Device gpu;
  DeviceBuffer<int> first(gpu, {1, 2, 3});
  DeviceBuffer<int> second(std::move(first));
  std::cout << "moved " << first.size() << " " << first.address() << " " << second.size() << "\n";
  DeviceBuffer<int> third(gpu, 5);
  third = std::move(second);
  for (const int value : third.to_host()) std::cout << value << " ";
  third.fill_bytes(1);
  std::cout << third.to_host()[2] << "\n";
  third.copy_from({1, 2});
}

void out_of_memory() { DeviceBuffer<float>(Device(), 1 << 20); }

void launch() {
  KernelExecutor kernel(Device(), "params 8 4 4 4 4 4 128 8", "scale");
  DeviceBuffer<float> buffer(kernel.device(), 6);
  const auto matrix = Array<float, 2>{0x1230, {2, 3}, {3, 1}};
  TMALayout layout;
  layout.sizes = {64, 64};
  layout.strides = {256};
  layout.box = {32, 8};
  LaunchConfig config{{4, 2}, {128}, 100000, nullptr, {2}};
  config.overlaps = true;
  kernel.launch(config, matrix, 1.5f, TMADescriptor(layout), std::int64_t{-1});
  kernel.launch({{1}, {32}}, matrix, 1.5f, TMADescriptor(layout), std::int64_t{7});
  kernel.synchronize();
}

void wrong_count() { KernelExecutor(Device(), "params 8 4", "scale").launch({}, std::int64_t{1}); }
void wrong_size() { KernelExecutor(Device(), "params 8 4", "scale").launch({}, std::int64_t{1}, 1.5); }
void wrong_grid() { KernelExecutor(Device(), "params", "scale").launch({{0}}); }
void wrong_block() { KernelExecutor(Device(), "params", "scale").launch({{1}, {1024, 2}}); }
void wrong_cluster() { KernelExecutor(Device(), "params", "scale").launch({{3}, {32}, 0, nullptr, {2}}); }
void broken() { KernelExecutor(Device(), "broken", "scale"); }
void absent() { KernelExecutor(Device(), "params 8", "absent"); }
void no_file() { KernelExecutor::from_file(Device(), "nowhere.cubin", "scale"); }

void arrays() {
  const Device gpu;
  const DeviceBuffer<float16> buffer(gpu, 100);
  const auto array = Array<float16, 3>::of(buffer, {2, 5, 8}, 4);
  std::cout << array.address - buffer.address() << " " << array.strides[0] << " " << array.strides[1] << " "
            << array.strides[2] << " " << array.contiguous() << array.aligned(16) << array.address_aligned(8) << "\n";
  std::cout << Array<float16, 2>{0, {3, 4}, {8, 1}}.contiguous() << Array<float16, 2>{0, {3, 8}, {8, 1}}.aligned(16)
            << Array<float16, 2>{0, {1, 4}, {99, 1}}.contiguous() << Array<float16, 2>{0, {0, 4}, {9, 1}}.contiguous()
            << "\n";
  Array<float16, 3>::of(buffer, {2, 5, 10}, 4);
}

void gemm() {
  const Device gpu;
  const DeviceBuffer<float16> a(gpu, 100 * 64), b(gpu, 64 * 200);
  DeviceBuffer<float> c(gpu, 100 * 200);
  GemmTile tile;
  GemmExecutor<float16, float16, float> plain(KernelExecutor(gpu, "params 8 8 8 4 4 4", "gemm"), 100, 200, 64, tile);
  plain(a, b, c);
  tile.use_tma = true;
  tile.shared_bytes = 65536;
  tile.swizzle_a = CU_TENSOR_MAP_SWIZZLE_64B;
  GemmExecutor<float16, float16, float> tma(KernelExecutor(gpu, "params 128 128 8 4 4 4", "gemm"), 100, 200, 64, tile);
  tma(a, b, c);
  tma.synchronize();
  plain(b, b, c);
}

void gemm_of_nothing() { GemmExecutor<float, float, float>(KernelExecutor(Device(), "params", "gemm"), 0, 1, 1); }

// tma TYPE ADDRESS SIZES STRIDES BOX STEPS SWIZZLE FILL; lists with commas
template <class T>
std::vector<T> numbers(std::string text) {
  std::vector<T> found;
  while (!text.empty()) {
    found.push_back(static_cast<T>(std::stoull(text)));
    const auto comma = text.find(',');
    text = comma == std::string::npos ? "" : text.substr(comma + 1);
  }
  return found;
}

void tma(char** words) {
  TMALayout layout;
  layout.type = static_cast<CUtensorMapDataType>(std::atoi(words[0]));
  layout.address = std::stoull(words[1]);
  layout.sizes = numbers<std::uint64_t>(words[2]);
  layout.strides = numbers<std::uint64_t>(words[3]);
  layout.box = numbers<std::uint32_t>(words[4]);
  layout.element_strides = numbers<std::uint32_t>(words[5]);
  layout.swizzle = static_cast<CUtensorMapSwizzle>(std::atoi(words[6]));
  layout.fill = static_cast<CUtensorMapFloatOOBfill>(std::atoi(words[7]));
  TMADescriptor made(layout);
}

// Every float16 and bfloat16 to a float and back; and the bits of the floats on standard input, in both.
void conversions() {
  unsigned wrong = 0;
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    float16 half;
    half.bits = static_cast<std::uint16_t>(bits);
    bfloat16 brain;
    brain.bits = half.bits;
    const float h = static_cast<float>(half), b = static_cast<float>(brain);
    wrong += std::isnan(h) ? !std::isnan(static_cast<float>(float16(h))) : float16(h).bits != bits;
    wrong += std::isnan(b) ? !std::isnan(static_cast<float>(bfloat16(b))) : bfloat16(b).bits != bits;
  }
  std::cout << wrong << "\n";
  for (std::uint32_t bits; std::cin >> bits;) {
    const float value = detail::float_of(bits);
    const float16 half(value);
    std::cout << half.bits << " " << bfloat16(value).bits << " " << detail::bits_of(static_cast<float>(half)) << "\n";
  }
}

}  // namespace

int main(int count, char** words) {
  std::cout << std::unitbuf;
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  const std::map<std::string, std::function<void()>> cases = {
      {"device", device}, {"no_such_device", no_such_device}, {"arch", arch}, {"buffers", buffers},
      {"out_of_memory", out_of_memory}, {"launch", launch}, {"wrong_count", wrong_count}, {"wrong_size", wrong_size},
      {"wrong_grid", wrong_grid}, {"wrong_block", wrong_block}, {"wrong_cluster", wrong_cluster}, {"broken", broken},
      {"absent", absent}, {"no_file", no_file}, {"arrays", arrays}, {"gemm", gemm}, {"gemm_of_nothing", gemm_of_nothing},
      {"conversions", conversions},
  };
  if (count < 2) return 2;
  try {
    if (std::string(words[1]) == "tma") {
      tma(words + 2);
    } else {
      cases.at(words[1])();
    }
  } catch (const Error& error) {
    std::cout << "Error " << error.code << ": " << error.what() << "\n";
    return 1;
  }
  return 0;
}
