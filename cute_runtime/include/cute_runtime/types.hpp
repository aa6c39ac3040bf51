// The element types of arrays, with the conversions that a host needs to fill and read them.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "driver.hpp"

namespace cute_runtime {

namespace detail {
inline std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
inline float float_of(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
}  // namespace detail

// 8 bits of exponent and 7 of mantissa: the upper half of a float.
struct bfloat16 {
  std::uint16_t bits = 0;

  bfloat16() = default;
  explicit bfloat16(float value) {  // rounds to nearest, ties to even
    const std::uint32_t from = detail::bits_of(value);
    const bool nan = (from & 0x7fffffffu) > 0x7f800000u;
    bits = static_cast<std::uint16_t>(nan ? from >> 16 | 0x40u : (from + 0x7fffu + (from >> 16 & 1u)) >> 16);
  }
  explicit operator float() const { return detail::float_of(std::uint32_t{bits} << 16); }
};

// IEEE 754 binary16: 5 bits of exponent and 10 of mantissa.
struct float16 {
  std::uint16_t bits = 0;

  float16() = default;
  explicit float16(float value) {  // rounds to nearest, ties to even
    const std::uint32_t from = detail::bits_of(value);
    const std::uint32_t sign = from >> 16 & 0x8000u, magnitude = from & 0x7fffffffu;
    std::uint32_t made;
    if (magnitude > 0x7f800000u) {
      made = 0x7e00u;  // NaN
    } else if (magnitude >= 0x477ff000u) {
      made = 0x7c00u;  // 65520 and more round to infinity
    } else if (magnitude >= 0x38800000u) {
      made = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
    } else {  // subnormal: adding 0.5 makes the float unit round at 2^-24
      made = detail::bits_of(detail::float_of(magnitude) + 0.5f) - 0x3f000000u;
    }
    bits = static_cast<std::uint16_t>(sign | made);
  }
  explicit operator float() const {
    const std::uint32_t sign = std::uint32_t{bits & 0x8000u} << 16, magnitude = bits & 0x7fffu;
    if (magnitude >= 0x7c00u) return detail::float_of(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
    const float value = static_cast<float>(magnitude) / (1 << 24);  // exact for subnormals
    return detail::float_of(sign | (magnitude < 0x400u ? detail::bits_of(value) : (magnitude << 13) + 0x38000000u));
  }
};

// 8-bit floats, as their bits: 4 bits of exponent and 3 of mantissa, or 5 and 2.
struct float8_e4m3 {
  std::uint8_t bits = 0;
};
struct float8_e5m2 {
  std::uint8_t bits = 0;
};

// What is known of an element type. Specialise it for a type of your own, such as __half.
// `name`: as in a bundle; `tma`: what a TMA descriptor calls it; `is_float`: TMA may fill with NaN.
template <class T>
struct Element;

#define CUTE_RUNTIME_ELEMENT(type, text, kind, floating)                               \
  template <>                                                                         \
  struct Element<type> {                                                              \
    static constexpr const char* name = text;                                         \
    static constexpr CUtensorMapDataType tma = CU_TENSOR_MAP_DATA_TYPE_##kind;         \
    static constexpr bool is_float = floating;                                        \
  };
CUTE_RUNTIME_ELEMENT(float, "f32", FLOAT32, true)
CUTE_RUNTIME_ELEMENT(float16, "f16", FLOAT16, true)
CUTE_RUNTIME_ELEMENT(bfloat16, "bf16", BFLOAT16, true)
CUTE_RUNTIME_ELEMENT(float8_e4m3, "f8E4M3FN", UINT8, false)
CUTE_RUNTIME_ELEMENT(float8_e5m2, "f8E5M2", UINT8, false)
CUTE_RUNTIME_ELEMENT(std::int8_t, "i8", UINT8, false)
CUTE_RUNTIME_ELEMENT(std::uint8_t, "u8", UINT8, false)
CUTE_RUNTIME_ELEMENT(std::int32_t, "i32", INT32, false)
#undef CUTE_RUNTIME_ELEMENT

}  // namespace cute_runtime
