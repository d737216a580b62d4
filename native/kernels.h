// The table of compiled kernels: one per instruction-set level, all with the same meaning.
//
// Every pointer is to plain bytes and may be unaligned; kernels load and store through memcpy. `n` counts
// elements. No kernel reads or writes the floating-point environment, except `nearest_even`, which reads it.
#pragma once

#include <stdint.h>

namespace narrowcast {

enum Rounding : int { RN = 0, RNA = 1, RD = 2, RU = 3, RZ = 4, RO = 5 };

// How the HiF8 hybrid rounding compares the discarded bits with its threshold.
enum HybridCompare : int { GE = 0, GT = 1, GE_NONZERO = 2 };

// Bits of the value that an encoder returns: what its input contained. SEEN_UNDECIDED: blocks whose codes do not stand.
enum Seen : uint32_t { SEEN_NAN = 1, SEEN_INF = 2, SEEN_UNDECIDED = 4, SEEN_SUBNORMAL = 8 };

// Targets with a kernel on byte planes; every other 8-bit or 4-bit one goes through a table.
enum Float8 : int { E4M3 = 0, E5M2 = 1, HIF8 = 2, E2M1 = 3 };

// What a rule makes of overflow and of NaN: codes, and the values of those codes as fp32 bits.
struct Ends {
  uint32_t over_code, over_value, nan_code, nan_value;
};

struct IntegerTarget {
  uint32_t positive_limit;  // largest magnitude of a positive value
  uint32_t negative_limit;  // largest magnitude of a negative one; 0 for an unsigned target
  uint32_t mask;            // the code's bits
  int bytes;                // bytes of a code: 1, 2 or 4
};

// One code a byte, or two for X2.
enum MxElement : int {
  MX_E4M3 = 0, MX_E5M2 = 1, MX_E2M1 = 2, MX_E1M2 = 3, MX_E3M2 = 4, MX_E2M3 = 5, MX_E2M1X2 = 6, MX_E1M2X2 = 7
};

// A block-scaling rule: the byte of a block by its largest magnitude's exponent field, one up from a fraction on, and
// the element format.
struct MxRule {
  const uint32_t* threshold;  // by exponent field: the fraction from which `high` holds; zero counts as field 0
  const uint8_t* low;
  const uint8_t* high;
  bool flush_byte0;    // byte 0 makes every element zero
  bool drop_negative;  // an element of exactly -0 becomes +0
  uint8_t nan_code;    // of every element of a block with byte 255
  uint32_t limit_code;  // what overflow becomes
  MxElement element;
};

// How an accumulator leaves the Cube: multiplier, offset and limits. Arrays hold one element, or one for each column
// and kPadding more, because the last group of a row loads whole vectors.
constexpr int64_t kPadding = 64;

struct RequantRule {
  const float* scale;
  const int32_t* offset;  // of codes only
  const float* alpha;     // multiplier of negative accumulators, or null
  bool per_column;
  bool relu;     // negative accumulators give +0
  bool integer;  // S32 accumulators, else FP32
  int32_t inner_low, inner_high;  // of the rounded product
  int32_t low, high;
  uint32_t mask;
};

// Sums, extremes and counts of the finite elements; NaN and infinities only counted. The caller sets the start.
struct Summary {
  double sum, sum_squares;
  float minimum, maximum;
  int64_t zeros, subnormals, nans, infinities;
};

struct Kernels {
  const char* level;

  // True while the calling thread rounds to nearest, ties to even.
  bool (*nearest_even)();

  // fp32 -> codes
  uint32_t (*encode_table14)(const void* src, const void* table, void* dst, int64_t n);
  uint32_t (*encode_float8)(const void* src, void* dst, int64_t n, Float8 target, const Ends* ends);
  uint32_t (*encode_hybrid)(const void* src, void* dst, int64_t n, HybridCompare compare, const Ends* ends);
  uint32_t (*encode_bf16)(const void* src, void* dst, int64_t n, Rounding mode, uint32_t limit_code,
                          uint32_t nan_code);
  uint32_t (*encode_fp16)(const void* src, void* dst, int64_t n, Rounding mode, uint32_t limit_code,
                          uint32_t nan_code);
  uint32_t (*encode_integer)(const void* src, void* dst, int64_t n, Rounding mode, bool saturate,
                             const IntegerTarget* target);

  // 16-bit source -> 1 or 2 byte codes, by a table of all 65536 patterns
  void (*map16_to8)(const void* src, const void* table, void* dst, int64_t n);
  void (*map16_to16)(const void* src, const void* table, void* dst, int64_t n);

  // codes -> fp32; `stream` writes past the cache
  void (*decode_table8)(const void* src, const void* table, void* dst, int64_t n, bool stream);
  void (*decode_fp16)(const void* src, void* dst, int64_t n, bool stream);
  void (*decode_bf16)(const void* src, void* dst, int64_t n, bool stream);

  // fp32 -> fp32 on the target's grid
  uint32_t (*round_float8)(const void* src, void* dst, int64_t n, Float8 target, const Ends* ends, bool stream);
  uint32_t (*round_table14)(const void* src, const void* table, void* dst, int64_t n, bool stream);
  uint32_t (*round_hybrid)(const void* src, void* dst, int64_t n, HybridCompare compare, const Ends* ends,
                           bool stream);

  // One row of q = clamp(rint(x / scale) + offset, low, high) & mask.
  uint32_t (*quantize_row)(const void* src, void* dst, int64_t n, float scale, int32_t offset, int32_t low,
                           int32_t high, uint32_t mask);
  // One row of (code - offset) * scale; code 0: s8, 1: u8, 2: s16. `stream` writes past the cache.
  void (*dequantize_row)(const void* src, void* dst, int64_t n, int code, float scale, float offset, bool stream);
  // One row of q = clamp(rint(x * multiplier + offset), low, high) & mask; NaN gives 0.
  void (*multiply_row)(const void* src, void* dst, int64_t n, float multiplier, float offset, int32_t low,
                       int32_t high, uint32_t mask);
  // Largest finite magnitude, as fp32 bits.
  uint32_t (*absmax)(const void* src, int64_t n, uint32_t* largest);

  // One row of blocks of `block` elements: codes, and a scale byte for each block; ties to even or away.
  uint32_t (*mx_row)(const void* src, void* codes, void* scales, int64_t n, int64_t block, bool away,
                     const MxRule* rule);

  // Rows of accumulators: one byte of code each, or the scaled fp32 values. Strides count elements.
  uint32_t (*requant_rows)(const void* src, int64_t in_stride, void* dst, int64_t out_stride, int64_t rows,
                           int64_t columns, const RequantRule* rule, bool codes);

  // Adds to `into`, and to 256 counts by exponent field where `exponents` is not null.
  void (*summarize)(const void* src, int64_t n, Summary* into, int64_t* exponents);

  void (*pack4)(const void* src, void* dst, int64_t n);
  void (*unpack4)(const void* src, void* dst, int64_t n);

  // Trivial kernels of the same footprint: what memory allows.
  void (*limit_4to1)(const void* src, void* dst, int64_t n);
  void (*limit_4to2)(const void* src, void* dst, int64_t n);
  void (*limit_1to4)(const void* src, void* dst, int64_t n);
  void (*limit_2to4)(const void* src, void* dst, int64_t n);
  void (*limit_4to4)(const void* src, void* dst, int64_t n);
  void (*limit_2to1)(const void* src, void* dst, int64_t n);  // n bytes of output
  void (*limit_1to2)(const void* src, void* dst, int64_t n);  // n bytes of input
  uint32_t (*limit_read)(const void* src, int64_t n);
};

#if defined(__x86_64__)
extern const Kernels kernels_v2;
extern const Kernels kernels_v3;
#elif defined(__aarch64__)
extern const Kernels kernels_aarch64;
#endif

}  // namespace narrowcast
