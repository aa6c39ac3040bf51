// TMADescriptor: what the copy engine of a GPU from sm_90 on must know of an array, in 128 bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "types.hpp"

namespace cute_runtime {

// An array in global memory and the box of it that one copy moves. Dimensions begin with the one that is contiguous.
// The rules are those of cuTensorMapEncodeTiled in the CUDA driver API's manual.
struct TMALayout {
  CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  CUdeviceptr address = 0;
  std::vector<std::uint64_t> sizes;            // elements, 2 to 5 dimensions
  std::vector<std::uint64_t> strides;          // bytes, of all dimensions but the first
  std::vector<std::uint32_t> box;              // elements, 1 to 256 in each dimension
  std::vector<std::uint32_t> element_strides;  // 1 to 8; empty: all 1
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
  CUtensorMapL2promotion l2_promotion = CU_TENSOR_MAP_L2_PROMOTION_NONE;
  CUtensorMapFloatOOBfill fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;  // what a copy reads outside of the array
};

namespace detail {

inline std::size_t tma_item_size(CUtensorMapDataType type) {
  switch (type) {
    case CU_TENSOR_MAP_DATA_TYPE_UINT8: return 1;
    case CU_TENSOR_MAP_DATA_TYPE_UINT16:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16: return 2;
    case CU_TENSOR_MAP_DATA_TYPE_INT64:
    case CU_TENSOR_MAP_DATA_TYPE_UINT64:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT64: return 8;
    case CU_TENSOR_MAP_DATA_TYPE_INT32:
    case CU_TENSOR_MAP_DATA_TYPE_UINT32:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ: return 4;
    default: throw Error("TMADescriptor: elements of this packed type are not supported");
  }
}

inline bool tma_is_float(CUtensorMapDataType type) {
  return type >= CU_TENSOR_MAP_DATA_TYPE_FLOAT16 && type <= CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ;
}

inline std::size_t tma_swizzle_span(CUtensorMapSwizzle swizzle) {  // bytes; 0 without a swizzle
  switch (swizzle) {
    case CU_TENSOR_MAP_SWIZZLE_NONE: return 0;
    case CU_TENSOR_MAP_SWIZZLE_32B: return 32;
    case CU_TENSOR_MAP_SWIZZLE_64B: return 64;
    default: return 128;
  }
}

// Why the copy engine cannot do this, or an empty text.
inline std::string tma_refuses(const TMALayout& layout) {
  const auto text = [](std::uint64_t number) { return std::to_string(number); };
  const std::size_t rank = layout.sizes.size(), item = tma_item_size(layout.type);
  if (rank < 2 || rank > 5) return "rank " + text(rank) + ": it must be 2 to 5";
  if (layout.strides.size() != rank - 1) {
    return text(layout.strides.size()) + " strides: an array of rank " + text(rank) + " needs " + text(rank - 1) +
           ", for all dimensions but the contiguous one";
  }
  if (layout.box.size() != rank) return text(layout.box.size()) + " box sizes for rank " + text(rank);
  if (!layout.element_strides.empty() && layout.element_strides.size() != rank) {
    return text(layout.element_strides.size()) + " element strides for rank " + text(rank);
  }
  if (layout.address % 16 != 0) return "the address is not a multiple of 16 bytes";
  for (std::size_t i = 0; i < rank; ++i) {
    if (layout.sizes[i] == 0 || layout.sizes[i] > std::uint64_t{1} << 32) {
      return "size " + text(layout.sizes[i]) + " of dimension " + text(i) + ": it must be 1 to 2^32";
    }
    if (layout.box[i] == 0 || layout.box[i] > 256) {
      return "box size " + text(layout.box[i]) + " of dimension " + text(i) + ": it must be 1 to 256";
    }
    if (!layout.element_strides.empty() && (layout.element_strides[i] == 0 || layout.element_strides[i] > 8)) {
      return "element stride " + text(layout.element_strides[i]) + " of dimension " + text(i) + ": it must be 1 to 8";
    }
  }
  for (std::size_t i = 0; i + 1 < rank; ++i) {
    if (layout.strides[i] % 16 != 0 || layout.strides[i] >= std::uint64_t{1} << 40) {
      return "stride " + text(layout.strides[i]) + " of dimension " + text(i + 1) +
             ": it must be a multiple of 16 bytes below 2^40";
    }
  }
  const std::size_t inner = layout.box[0] * item, span = tma_swizzle_span(layout.swizzle);
  if (inner % 16 != 0) return "the box is " + text(inner) + " bytes wide: it must be a multiple of 16";
  if (span != 0 && inner > span) {
    return "the box is " + text(inner) + " bytes wide: a swizzle of " + text(span) + " bytes takes no more than that";
  }
  if (layout.fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE && !tma_is_float(layout.type)) {
    return "only elements of a floating-point type can be filled with NaN";
  }
  return "";
}

}  // namespace detail

// Passed to a kernel by value, as a `const __grid_constant__ CUtensorMap` parameter.
class TMADescriptor {
 public:
  // Throws Error that names what the copy engine cannot do. Needs a driver, but no GPU's context.
  explicit TMADescriptor(const TMALayout& layout) {
    if (const std::string why = detail::tma_refuses(layout); !why.empty()) throw Error("TMADescriptor: " + why);
    const std::vector<std::uint32_t> ones(layout.sizes.size(), 1);
    const auto& steps = layout.element_strides.empty() ? ones : layout.element_strides;
    check(driver().cuTensorMapEncodeTiled(&map_, layout.type, static_cast<cuuint32_t>(layout.sizes.size()),
                                          reinterpret_cast<void*>(layout.address), layout.sizes.data(),
                                          layout.strides.data(), layout.box.data(), steps.data(),
                                          CU_TENSOR_MAP_INTERLEAVE_NONE, layout.swizzle, layout.l2_promotion,
                                          layout.fill),
          "cuTensorMapEncodeTiled", "making a TMADescriptor");
  }

  // A row-major matrix (rows, columns) without gaps, copied in boxes of (box_rows, box_columns).
  template <class T>
  static TMADescriptor matrix(CUdeviceptr address, std::uint64_t rows, std::uint64_t columns, std::uint32_t box_rows,
                              std::uint32_t box_columns, CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE) {
    TMALayout layout;
    layout.type = Element<T>::tma;
    layout.address = address;
    layout.sizes = {columns, rows};
    layout.strides = {columns * sizeof(T)};
    layout.box = {box_columns, box_rows};
    layout.swizzle = swizzle;
    layout.l2_promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_128B;
    return TMADescriptor(layout);
  }

  const CUtensorMap& map() const { return map_; }

 private:
  CUtensorMap map_{};
};

}  // namespace cute_runtime
