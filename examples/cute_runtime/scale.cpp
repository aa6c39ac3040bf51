// Launch a kernel of a cubin from C++. compile_mlir.py makes the cubin.
//
//   INCLUDES=$(python -c "import cute_runtime; print(*(f'-I{path}' for path in cute_runtime.include_dirs()))")
//   g++ -std=c++17 $INCLUDES examples/cute_runtime/scale.cpp -o scale -ldl && ./scale scale.cubin
#include <cute_runtime/cute_runtime.hpp>
#include <iostream>

int main(int count, char** words) try {
  using namespace cute_runtime;
  if (count != 2) throw Error("usage: scale CUBIN");
  const Device gpu(0);
  std::cout << gpu.name() << ", " << gpu.arch().name() << "\n";
  auto kernel = KernelExecutor::from_file(gpu, words[1], "scale");
  DeviceBuffer<float> x(gpu, std::vector<float>{1, 2, 3});
  kernel.launch({/*grid*/ {1}, /*block*/ {128}}, x, std::int32_t{3}, 2.0f);
  for (const float value : x.to_host()) std::cout << value << "\n";
} catch (const cute_runtime::Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
