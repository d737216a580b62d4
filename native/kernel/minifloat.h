// fp32 -> a float format with fewer exponent and fraction bits, in integer arithmetic: one rounding, whatever the
// thread's rounding mode and subnormal flags are.
//
//   v  = significand with its hidden bit, plus (exponent - minimum) << 23 for a normal result
//   q  = v >> shift, rounded                     the code: a carry out of the fraction bumps the exponent
//   q  = min(q, limit)                           limit: the largest code, or the one overflow becomes

// v / 2^shift rounded by Mode; 1 <= shift, and v < 2^31. `negative` is a lane mask.
template <int Mode>
NC_INLINE U round_shift(U v, U shift, U negative) {
  const U quotient = shift_right(v, shift);
  if constexpr (Mode == RZ) return quotient;
  if constexpr (Mode == RN) {
    const U half = shift_left(all(1), shift - 1);
    return shift_right(v + (half - 1) + (quotient & 1), shift);
  }
  if constexpr (Mode == RNA) return shift_right(v + shift_left(all(1), shift - 1), shift);
  const U below = shift_left(all(1), shift) - 1;
  if constexpr (Mode == RD) return shift_right(v + (below & negative), shift);
  if constexpr (Mode == RU) return shift_right(v + (below & ~negative), shift);
  return quotient | shift_right((v & below) + below, shift);  // RO: a sticky last bit
}

template <int FractionBits, int MinExponent, int SignShift, int Mode>
struct EncodeMinifloat {
  U limit, nan_code;
  NanWatch watch;

  NC_ALWAYS U operator()(U bits) {
    const U a = bits & kAbs;
    watch.see(a);
    const U exponent = umin(a & kInf, all((uint32_t)MinExponent << 23));
    U v = a - exponent + (1u << 23);
    // Only upward and odd rounding can tell a subnormal fp32, or zero, from its neighbour.
    if constexpr (Mode >= RD && Mode != RZ) v = select((I)(a < all(1u << 23)), a, v);
    const U shift = umin(all(23 - FractionBits + MinExponent) - (exponent >> 23), all(31));
    const U code = umin(round_shift<Mode>(v, shift, (U)((I)bits >> 31)), limit);
    const U sign = (bits >> SignShift) & (0x80000000u >> SignShift);
    return select((I)(a > all(kInf)), nan_code, code | sign);
  }
};

template <int FractionBits, int MinExponent, int OutBytes, int Mode>
NC_INLINE uint32_t encode_minifloat_as(const void* src, void* dst, int64_t n, uint32_t limit, uint32_t nan_code) {
  EncodeMinifloat<FractionBits, MinExponent, 32 - 8 * OutBytes, Mode> step{all(limit), all(nan_code), {}};
  sweep<OutBytes>(src, dst, n, step);
  return step.watch.seen();
}
