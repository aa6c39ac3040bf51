// Causal attention, head size 64, bf16. A block of 4 warps makes 64 queries of one head; it walks the keys in tiles of 64,
// which cp.async brings while the tile before is multiplied. Rows of shared memory are swizzled in parts of 16 bytes.
constexpr int D = 64, TILE = 64, ROW = D / 8, STAGE = TILE * ROW;  // in parts of 16 bytes
constexpr float LOWEST = -1e30f;

__device__ unsigned address(const uint4 *tile, int row, int part) {
  return (unsigned)__cvta_generic_to_shared(tile + row * ROW + (part ^ (row & 7)));
}

__device__ void load(uint4 *tile, const uint4 *rows, int first, int end) {  // rows past the end become zero
  for (int i = threadIdx.x; i < STAGE; i += 128) {
    int row = i / ROW, part = i % ROW, there = first + row < end;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address(tile, row, part)),
                 "l"(rows + (there ? first + row : 0) * ROW + part), "r"(there * 16));
  }
}

__device__ void ldmatrix(unsigned *to, unsigned from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(from));
}

__device__ void ldmatrix_transposed(unsigned *to, unsigned from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(from));
}

__device__ void mma(float *c, const unsigned *a, unsigned b0, unsigned b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ unsigned pack(float low, float high) {
  unsigned packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

__device__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}

__device__ float quad_sum(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}

extern "C" __global__ __launch_bounds__(128) void attention(const uint4 *q, const uint4 *k, const uint4 *v, unsigned *out,
                                                            int length, float scale_log2) {
  __shared__ uint4 queries[STAGE], keys[2][STAGE], values[2][STAGE];
  int block = gridDim.x - 1 - blockIdx.x, first = block * TILE, tiles = block + 1;  // the longest blocks first
  long head = (long)blockIdx.y * length * ROW;
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = warp * 16 + lane / 4;
  load(queries, q + head, first, length);
  load(keys[0], k + head, 0, length);
  load(values[0], v + head, 0, length);
  asm volatile("cp.async.commit_group;");
  float result[8][4] = {}, top[2] = {LOWEST, LOWEST}, total[2] = {};
  unsigned a[4][4];
  for (int tile = 0; tile < tiles; tile++) {
    asm volatile("cp.async.wait_group 0;");
    __syncthreads();
    if (tile + 1 < tiles) {
      load(keys[(tile + 1) % 2], k + head, (tile + 1) * TILE, length);
      load(values[(tile + 1) % 2], v + head, (tile + 1) * TILE, length);
      asm volatile("cp.async.commit_group;");
    }
    if (tile == 0)
      for (int step = 0; step < 4; step++) ldmatrix(a[step], address(queries, warp * 16 + lane % 16, step * 2 + lane / 16));
    float scores[8][4] = {};
    for (int step = 0; step < 4; step++)
      for (int n = 0; n < 4; n++) {
        unsigned b[4];
        ldmatrix(b, address(keys[tile % 2], n * 16 + lane % 8 + lane / 16 * 8, step * 2 + lane / 8 % 2));
        mma(scores[2 * n], a[step], b[0], b[1]);
        mma(scores[2 * n + 1], a[step], b[2], b[3]);
      }
    float risen[2] = {top[0], top[1]};
    for (int n = 0; n < 8; n++)
      for (int i = 0; i < 4; i++) {
        int key = tile * TILE + n * 8 + lane % 4 * 2 + i % 2, query = first + row + i / 2 * 8;
        scores[n][i] = tile + 1 == tiles && key > query ? LOWEST : scores[n][i] * scale_log2;
        risen[i / 2] = fmaxf(risen[i / 2], scores[n][i]);
      }
    for (int i = 0; i < 2; i++) {
      risen[i] = quad_max(risen[i]);
      float shrink = exp2f(top[i] - risen[i]);
      top[i] = risen[i];
      total[i] *= shrink;
      for (int n = 0; n < 8; n++) result[n][2 * i] *= shrink, result[n][2 * i + 1] *= shrink;
    }
    for (int n = 0; n < 8; n++)
      for (int i = 0; i < 4; i++) total[i / 2] += scores[n][i] = exp2f(scores[n][i] - top[i / 2]);
    for (int step = 0; step < 4; step++) {
      float *p = scores[2 * step], *r = scores[2 * step + 1];
      unsigned weights[4] = {pack(p[0], p[1]), pack(p[2], p[3]), pack(r[0], r[1]), pack(r[2], r[3])};
      for (int n = 0; n < 4; n++) {
        unsigned b[4];
        ldmatrix_transposed(b, address(values[tile % 2], step * 16 + lane % 16, n * 2 + lane / 16));
        mma(result[2 * n], weights, b[0], b[1]);
        mma(result[2 * n + 1], weights, b[2], b[3]);
      }
    }
  }
  for (int i = 0; i < 2; i++) {
    float scale = 1 / quad_sum(total[i]);
    int query = first + row + i * 8;
    if (query >= length) continue;
    for (int n = 0; n < 8; n++)
      out[((long)blockIdx.y * length + query) * (D / 2) + n * 4 + lane % 4] =
          pack(result[n][2 * i] * scale, result[n][2 * i + 1] * scale);
  }
}
