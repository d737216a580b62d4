// fp32 -> the HiF8 grid. HiF8 keeps 3 fraction bits for |E| <= 3, 2 up to 7, 1 up to 15, and none below 2^-15, so
// it drops 20 + k bits of an fp32.

constexpr uint32_t kHif8Max = 0x47000000u;         // 32768
constexpr uint32_t kHif8Smallest = 0x34800000u;    // 2^-22
constexpr uint32_t kHif8Underflow = 0x34000000u;   // 2^-23: below it, zero

NC_INLINE U dropped_beyond_20(U a) {
  const I exponent = (I)(a >> 23) - 127;
  const I size = imax(exponent, -exponent);
  return (U)(I{} - (size > 3) - (size > 7) - (exponent < -15));
}

// Zero has no sign, and a negative value that underflows gives it.
NC_INLINE U hif8_value(U bits, U a, U rounded, U over, U nan) {
  rounded = select((I)(rounded > all(kHif8Max)), over, rounded);
  const U sign = bits & ~kAbs & (U)(rounded != all(0));
  return select((I)(a > all(kInf)), nan, rounded | sign);
}

// Ties away from zero. Every magnitude in [2^-23, 2^-22) becomes 2^-22.
struct RoundHif8 {
  U over, nan;
  NanWatch watch;

  NC_ALWAYS U operator()(U bits) {
    const U a = bits & kAbs;
    watch.see(a);
    const U half = shift_left(all(1u << 19), dropped_beyond_20(a));
    U rounded = umax((a + half) & (all(0) - (half + half)), all(kHif8Smallest));
    rounded &= (U)(a >= all(kHif8Underflow));
    return hif8_value(bits, a, rounded, over, nan);
  }
};

uint32_t round_hif8(const void* src, void* dst, int64_t n, uint32_t over, uint32_t nan, bool stream) {
  RoundHif8 step{all(over), all(nan), {}};
  sweep_values(src, dst, n, stream, step);
  return step.watch.seen();
}

template <int Compare>
NC_INLINE U goes_up(U fraction, U threshold) {
  if constexpr (Compare == GT) return (U)(fraction > threshold);
  if constexpr (Compare == GE) return (U)(fraction >= threshold);
  return (U)(fraction >= threshold) & (U)(fraction != all(0));
}

// Hybrid rounding of a magnitude: the first 14 discarded bits against the operand's own low 14. |E| <= 3 rounds ties
// away. From 2^16 up, NaN included, the magnitude is returned as it is.
template <int Compare>
NC_INLINE U round_hybrid_magnitude(U a) {
  constexpr uint32_t kLow = 0x3FFF;
  const U k = dropped_beyond_20(a);
  const U threshold = a & kLow;
  const U unit = shift_left(all(1u << 20), k);
  const U compared = goes_up<Compare>(shift_right(a, k + 6) & kLow, threshold);
  const U tie_away = (U)((I)(a << 12) >> 31);
  const U up = select((I)(k == all(0)), tie_away, compared);
  U rounded = (a + (unit & up)) & (all(0) - unit);
  const U tiny = goes_up<Compare>(((a >> 10) & 0x1FFFu) | 0x2000u, threshold) & kHif8Smallest;
  rounded = select((I)(a < all(kHif8Smallest)), tiny, rounded) & (U)(a >= all(kHif8Underflow));
  return select((I)(a < all(0x47800000u)), rounded, a);
}

template <int Compare>
struct IndexHybrid {
  NanWatch watch;
  NC_ALWAYS U operator()(U bits) {
    const U a = bits & kAbs;
    watch.see(a);
    return index14(round_hybrid_magnitude<Compare>(a) | (bits & ~kAbs));
  }
};

template <int Compare>
NC_INLINE uint32_t encode_hybrid_as(const void* src, const void* table, void* dst, int64_t n) {
  IndexHybrid<Compare> step;
  sweep_table8(src, table, dst, n, step);
  return step.watch.seen();
}

uint32_t encode_hybrid(const void* src, const void* table, void* dst, int64_t n, HybridCompare compare) {
  switch (compare) {
    case GE: return encode_hybrid_as<GE>(src, table, dst, n);
    case GT: return encode_hybrid_as<GT>(src, table, dst, n);
    default: return encode_hybrid_as<GE_NONZERO>(src, table, dst, n);
  }
}

template <int Compare>
struct RoundHybrid {
  U over, nan;
  NanWatch watch;

  NC_ALWAYS U operator()(U bits) {
    const U a = bits & kAbs;
    watch.see(a);
    return hif8_value(bits, a, round_hybrid_magnitude<Compare>(a), over, nan);
  }
};

template <int Compare>
NC_INLINE uint32_t round_hybrid_as(const void* src, void* dst, int64_t n, uint32_t over, uint32_t nan,
                                   bool stream) {
  RoundHybrid<Compare> step{all(over), all(nan), {}};
  sweep_values(src, dst, n, stream, step);
  return step.watch.seen();
}

uint32_t round_hybrid(const void* src, void* dst, int64_t n, HybridCompare compare, uint32_t over, uint32_t nan,
                      bool stream) {
  switch (compare) {
    case GE: return round_hybrid_as<GE>(src, dst, n, over, nan, stream);
    case GT: return round_hybrid_as<GT>(src, dst, n, over, nan, stream);
    default: return round_hybrid_as<GE_NONZERO>(src, dst, n, over, nan, stream);
  }
}
