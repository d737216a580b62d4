// fp32 -> integers, row quantization, packing of 4-bit codes.

// Rounds |x| to an integer in integer arithmetic, then limits it or keeps its low bits (of the infinite two's
// complement). Infinity takes the limit either way; NaN gives 0.
template <int Mode, bool Saturate>
struct EncodeInteger {
  U positive_limit, negative_limit, mask;
  NanWatch watch;

  NC_ALWAYS U operator()(U bits) {
    const U a = bits & kAbs;
    watch.see(a);
    const U negative = (U)((I)bits >> 31);
    const U exponent = a >> 23;
    const U significand = (a & 0x7FFFFFu) | (all(1u << 23) & (U)(exponent != all(0)));
    // A right shift of at least 1 for round_shift: the significand doubled, so 2^24 and up are exact on the left.
    const U right = umin(umax(all(151), exponent) - exponent, all(31));
    const U left = umax(exponent, all(150)) - 150;
    const U rounded = round_shift<Mode>(significand << 1, umax(right, all(1)), negative);
    const U whole = select((I)(exponent > all(150)), shift_left(significand, left), rounded);
    const U limit = select((I)negative, negative_limit, positive_limit);
    const U huge = (U)(a >= all(Saturate ? 0x4F800000u : kInf));  // 2^32, or infinity
    U magnitude = Saturate ? umin(whole, limit) : whole;
    magnitude = select((I)huge, limit, magnitude);
    magnitude &= (U)(a <= all(kInf));
    return ((magnitude ^ negative) - negative) & mask;
  }
};

template <int Mode, bool Saturate>
NC_INLINE uint32_t encode_integer_as(const void* src, void* dst, int64_t n, const IntegerTarget& target) {
  EncodeInteger<Mode, Saturate> step{
      all(target.positive_limit), all(target.negative_limit), all(target.mask), {}};
  if (target.bytes == 1) sweep<1>(src, dst, n, step);
  else if (target.bytes == 2) sweep<2>(src, dst, n, step);
  else sweep<4>(src, dst, n, step);
  return step.watch.seen();
}

template <int Mode>
uint32_t encode_integer_mode(const void* src, void* dst, int64_t n, bool saturate, const IntegerTarget& target) {
  return saturate ? encode_integer_as<Mode, true>(src, dst, n, target)
                  : encode_integer_as<Mode, false>(src, dst, n, target);
}

uint32_t encode_integer(const void* src, void* dst, int64_t n, Rounding mode, bool saturate,
                        const IntegerTarget* target) {
  switch (mode) {
    case RN: return encode_integer_mode<RN>(src, dst, n, saturate, *target);
    case RNA: return encode_integer_mode<RNA>(src, dst, n, saturate, *target);
    case RD: return encode_integer_mode<RD>(src, dst, n, saturate, *target);
    case RU: return encode_integer_mode<RU>(src, dst, n, saturate, *target);
    case RZ: return encode_integer_mode<RZ>(src, dst, n, saturate, *target);
    default: return encode_integer_mode<RO>(src, dst, n, saturate, *target);
  }
}

// q = clamp(rint(x / scale) + offset, low, high), by a true division: the one operation here that follows the
// thread's rounding mode. The quotient is limited to +-2^24 before it becomes an integer, which no code reaches.
// A NaN quotient counts as 0 and is reported. The code's bounds, less the offset, are integers, so clamping before
// the rounding is clamping after it.
struct QuantizeRow {
  F scale, low, high;
  I offset;
  U mask;
  U nan = {};

  NC_ALWAYS U operator()(U bits) {
    const F quotient = (F)bits / scale;
    const U unordered = (U)(quotient != quotient);
    nan |= unordered;
    const F limited = fmax(fmin((F)((U)quotient & ~unordered), high), low);
    return (U)(to_int(rint_even(limited)) + offset) & mask;
  }
};

// The offset is below 2^23 in magnitude: fp32 holds the bounds less the offset.
uint32_t quantize_row(const void* src, void* dst, int64_t n, float scale, int32_t offset, int32_t low, int32_t high,
                      uint32_t mask) {
  QuantizeRow step{all_f(scale), all_f((float)(low - offset)), all_f((float)(high - offset)),
                   (I)all((uint32_t)offset), all(mask), {}};
  sweep<1>(src, dst, n, step);
  return largest_lane(step.nan) ? (uint32_t)SEEN_NAN : 0u;
}

uint32_t absmax(const void* src, int64_t n, uint32_t* largest) {
  const char* in = static_cast<const char*>(src);
  U finite = {}, infinite = {};
  NanWatch watch;
  char padded[kBytes] = {};
  while (n > 0) {
    if (n < kLanes) {
      __builtin_memcpy(padded, in, 4 * n);
      in = padded;
    }
    const U a = load<U>(in) & kAbs;
    watch.see(a);
    finite = umax(finite, a & (U)(a < all(kInf)));
    infinite |= (U)(a == all(kInf));
    n -= kLanes, in += kBytes;
  }
  *largest = largest_lane(finite);
  return watch.seen() | (largest_lane(infinite) ? (uint32_t)SEEN_INF : 0u);
}

// Two codes a byte, the even element in the low nibble; an odd last element leaves the high nibble 0.
void pack4(const void* src, void* dst, int64_t n) {
  const uint8_t* in = static_cast<const uint8_t*>(src);
  uint8_t* out = static_cast<uint8_t*>(dst);
  for (; n >= 4 * kBytes; n -= 4 * kBytes, in += 4 * kBytes, out += 2 * kBytes) {
    for (int half = 0; half < 2; ++half) {
      const H a = load<H>(in + 2 * half * kBytes), b = load<H>(in + (2 * half + 1) * kBytes);
      store(out + half * kBytes, join_bytes((a & 0x0F) | ((a >> 4) & 0xF0), (b & 0x0F) | ((b >> 4) & 0xF0)));
    }
  }
  for (; n >= 2; n -= 2, in += 2) *out++ = (uint8_t)((in[0] & 0x0F) | (in[1] << 4));
  if (n) *out = in[0] & 0x0F;
}

// n is the number of codes.
void unpack4(const void* src, void* dst, int64_t n) {
  const uint8_t* in = static_cast<const uint8_t*>(src);
  uint8_t* out = static_cast<uint8_t*>(dst);
  for (; n >= kBytes; n -= kBytes, in += kBytes / 2, out += kBytes) {
    const H pair = widen_bytes(in);
    store(out, (pair | (pair << 4)) & 0x0F0F);
  }
  for (; n >= 2; n -= 2, ++in) *out++ = *in & 0x0F, *out++ = *in >> 4;
  if (n) *out = *in & 0x0F;
}
