// One warp makes one row of 768 bf16. The row stays in registers; sums go around the warp by shuffles.
constexpr int C = 768, VECTORS = C / 8 / 32;  // vectors of 8 values that a thread holds

__device__ float sum_of_warp(float value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
  return value;
}

__device__ void unpack(uint4 packed, float *values) {
  unsigned words[4] = {packed.x, packed.y, packed.z, packed.w};
  for (int i = 0; i < 4; i++) {
    values[2 * i] = __uint_as_float(words[i] << 16);
    values[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000);
  }
}

__device__ unsigned pack(float low, float high) {
  unsigned packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

extern "C" __global__ void layernorm(const uint4 *x, const uint4 *weight, const uint4 *bias, uint4 *out, int rows,
                                     float eps) {
  int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  float values[VECTORS][8], sum = 0, squares = 0;
  for (int i = 0; i < VECTORS; i++) unpack(x[row * (C / 8) + i * 32 + lane], values[i]);
  for (int i = 0; i < VECTORS; i++)
    for (int j = 0; j < 8; j++) sum += values[i][j];
  float mean = sum_of_warp(sum) / C;
  for (int i = 0; i < VECTORS; i++)
    for (int j = 0; j < 8; j++) squares += (values[i][j] - mean) * (values[i][j] - mean);
  float scale = rsqrtf(sum_of_warp(squares) / C + eps);
  for (int i = 0; i < VECTORS; i++) {
    float gain[8], shift[8], y[8];
    unpack(weight[i * 32 + lane], gain);
    unpack(bias[i * 32 + lane], shift);
    for (int j = 0; j < 8; j++) y[j] = (values[i][j] - mean) * scale * gain[j] + shift[j];
    out[row * (C / 8) + i * 32 + lane] =
        make_uint4(pack(y[0], y[1]), pack(y[2], y[3]), pack(y[4], y[5]), pack(y[6], y[7]));
  }
}
