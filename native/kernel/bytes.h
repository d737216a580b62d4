// Byte lanes: an fp32's top two bytes as an exponent and a fraction, each one lane of a byte vector, so that one
// instruction serves four times as many elements as in 32-bit lanes. Every 8-bit format needs only 7 fraction bits
// and whether anything follows them.

NC_INLINE B all8(uint8_t x) { return x - B{}; }

typedef int8_t S8 __attribute__((vector_size(kBytes)));
typedef int16_t S16 __attribute__((vector_size(kBytes)));

// 16 bytes, repeated to fill a vector.
struct Table16 {
  uint8_t entry[16];
};

#if defined(__AVX2__)
NC_INLINE B spread16(const Table16& t) {
  return (B)_mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(t.entry)));
}
// Index below 16.
NC_INLINE B look16(B table, B index) { return (B)_mm256_shuffle_epi8((__m256i)table, (__m256i)index); }
// Index of 16 and more gives 0.
NC_INLINE B look16_or_0(B table, B index) {
  return look16(table, (B)_mm256_adds_epu8((__m256i)index, _mm256_set1_epi8(0x70)));
}
NC_INLINE B min8(B a, B b) { return (B)_mm256_min_epu8((__m256i)a, (__m256i)b); }
NC_INLINE B max8(B a, B b) { return (B)_mm256_max_epu8((__m256i)a, (__m256i)b); }
NC_INLINE B minus_or_0(B a, B b) { return (B)_mm256_subs_epu8((__m256i)a, (__m256i)b); }
NC_INLINE B size_of(B a) { return (B)_mm256_abs_epi8((__m256i)a); }
NC_INLINE B pick(B mask, B yes, B no) { return (B)_mm256_blendv_epi8((__m256i)no, (__m256i)yes, (__m256i)mask); }
// The mask is bit 7 alone.
NC_INLINE B pick_by_top(B mask, B yes, B no) { return pick(mask, yes, no); }
NC_INLINE bool any8(B v) { return !_mm256_testz_si256((__m256i)v, (__m256i)v); }
#elif defined(__SSE4_1__)
NC_INLINE B spread16(const Table16& t) { return load<B>(t.entry); }
NC_INLINE B look16(B table, B index) { return (B)_mm_shuffle_epi8((__m128i)table, (__m128i)index); }
NC_INLINE B look16_or_0(B table, B index) {
  return look16(table, (B)_mm_adds_epu8((__m128i)index, _mm_set1_epi8(0x70)));
}
NC_INLINE B min8(B a, B b) { return (B)_mm_min_epu8((__m128i)a, (__m128i)b); }
NC_INLINE B max8(B a, B b) { return (B)_mm_max_epu8((__m128i)a, (__m128i)b); }
NC_INLINE B minus_or_0(B a, B b) { return (B)_mm_subs_epu8((__m128i)a, (__m128i)b); }
NC_INLINE B size_of(B a) { return (B)_mm_abs_epi8((__m128i)a); }
NC_INLINE B pick(B mask, B yes, B no) { return (B)_mm_blendv_epi8((__m128i)no, (__m128i)yes, (__m128i)mask); }
NC_INLINE B pick_by_top(B mask, B yes, B no) { return pick(mask, yes, no); }
NC_INLINE bool any8(B v) { return !_mm_testz_si128((__m128i)v, (__m128i)v); }
#elif defined(__aarch64__)
NC_INLINE B spread16(const Table16& t) { return load<B>(t.entry); }
NC_INLINE B look16(B table, B index) { return (B)vqtbl1q_u8((uint8x16_t)table, (uint8x16_t)index); }
NC_INLINE B look16_or_0(B table, B index) { return look16(table, index); }
NC_INLINE B min8(B a, B b) { return (B)vminq_u8((uint8x16_t)a, (uint8x16_t)b); }
NC_INLINE B max8(B a, B b) { return (B)vmaxq_u8((uint8x16_t)a, (uint8x16_t)b); }
NC_INLINE B minus_or_0(B a, B b) { return (B)vqsubq_u8((uint8x16_t)a, (uint8x16_t)b); }
NC_INLINE B size_of(B a) { return (B)vreinterpretq_u8_s8(vabsq_s8((int8x16_t)a)); }
NC_INLINE B pick(B mask, B yes, B no) { return (mask & yes) | (~mask & no); }
NC_INLINE B pick_by_top(B mask, B yes, B no) { return pick((B)((S8)mask < 0), yes, no); }
NC_INLINE bool any8(B v) { return vmaxvq_u8((uint8x16_t)v) != 0; }
#endif

// Four vectors of fp32 taken apart, first the highest byte. Lanes stand in the order join_codes and spread_values undo.
struct Raw {
  B top, next, third, low;
};

struct Planes {
  B exponent;  // biased, 0..255
  B fraction;  // top 7 bits; the lowest also says whether any lower bit is set
  B sign;      // bit 7; the rest is anything
  B nan;       // mask
};

NC_INLINE Planes planes_of(const Raw& raw) {
  const B odd_exponent = (B)((S8)raw.next < 0);
  Planes p;
  p.sign = raw.top;
  p.exponent = (raw.top + raw.top) - odd_exponent;
  p.fraction = (raw.next & 0x7F) | min8(raw.third | raw.low, all8(1));
  p.nan = (B)(p.exponent == all8(255)) & ~(B)(p.fraction == all8(0));
  return p;
}

#if defined(__AVX2__)
NC_INLINE Raw split(const char* in) {
  const __m256i order = _mm256_setr_epi8(3, 7, 11, 15, 2, 6, 10, 14, 1, 5, 9, 13, 0, 4, 8, 12,  //
                                         3, 7, 11, 15, 2, 6, 10, 14, 1, 5, 9, 13, 0, 4, 8, 12);
  const __m256i a = _mm256_shuffle_epi8(load<__m256i>(in), order);
  const __m256i b = _mm256_shuffle_epi8(load<__m256i>(in + 32), order);
  const __m256i c = _mm256_shuffle_epi8(load<__m256i>(in + 64), order);
  const __m256i d = _mm256_shuffle_epi8(load<__m256i>(in + 96), order);
  const __m256i ab_high = _mm256_unpacklo_epi32(a, b), cd_high = _mm256_unpacklo_epi32(c, d);
  const __m256i ab_low = _mm256_unpackhi_epi32(a, b), cd_low = _mm256_unpackhi_epi32(c, d);
  return {(B)_mm256_unpacklo_epi64(ab_high, cd_high), (B)_mm256_unpackhi_epi64(ab_high, cd_high),
          (B)_mm256_unpacklo_epi64(ab_low, cd_low), (B)_mm256_unpackhi_epi64(ab_low, cd_low)};
}
NC_INLINE B join_codes(B codes) {
  return (B)_mm256_permutevar8x32_epi32((__m256i)codes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}
// Byte planes back to four vectors of fp32, in order: out = high << 24 | next << 16.
NC_INLINE void spread_values(B high, B next, U* out) {
  const __m256i low16 = _mm256_unpacklo_epi8((__m256i)next, (__m256i)high);
  const __m256i high16 = _mm256_unpackhi_epi8((__m256i)next, (__m256i)high);
  const __m256i zero = _mm256_setzero_si256();
  out[0] = (U)_mm256_unpacklo_epi16(zero, low16);
  out[1] = (U)_mm256_unpackhi_epi16(zero, low16);
  out[2] = (U)_mm256_unpacklo_epi16(zero, high16);
  out[3] = (U)_mm256_unpackhi_epi16(zero, high16);
}
// 16-bit lanes of two planes, high << 8 | low, and masks of such lanes back to bytes.
NC_INLINE H pair_first(B high, B low) { return (H)_mm256_unpacklo_epi8((__m256i)low, (__m256i)high); }
NC_INLINE H pair_second(B high, B low) { return (H)_mm256_unpackhi_epi8((__m256i)low, (__m256i)high); }
NC_INLINE B masks_of_pairs(H first, H second) { return (B)_mm256_packs_epi16((__m256i)first, (__m256i)second); }
NC_INLINE H product_high(H a, H b) { return (H)_mm256_mulhi_epu16((__m256i)a, (__m256i)b); }
// The order in which spread_values wants its lanes, from codes as they lie in memory.
NC_INLINE B part_codes(B codes) {
  return (B)_mm256_permutevar8x32_epi32((__m256i)codes, _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
}
#elif defined(__SSE4_1__)
NC_INLINE Raw split(const char* in) {
  const __m128i order = _mm_setr_epi8(3, 7, 11, 15, 2, 6, 10, 14, 1, 5, 9, 13, 0, 4, 8, 12);
  const __m128i a = _mm_shuffle_epi8(load<__m128i>(in), order);
  const __m128i b = _mm_shuffle_epi8(load<__m128i>(in + 16), order);
  const __m128i c = _mm_shuffle_epi8(load<__m128i>(in + 32), order);
  const __m128i d = _mm_shuffle_epi8(load<__m128i>(in + 48), order);
  const __m128i ab_high = _mm_unpacklo_epi32(a, b), cd_high = _mm_unpacklo_epi32(c, d);
  const __m128i ab_low = _mm_unpackhi_epi32(a, b), cd_low = _mm_unpackhi_epi32(c, d);
  return {(B)_mm_unpacklo_epi64(ab_high, cd_high), (B)_mm_unpackhi_epi64(ab_high, cd_high),
          (B)_mm_unpacklo_epi64(ab_low, cd_low), (B)_mm_unpackhi_epi64(ab_low, cd_low)};
}
NC_INLINE B join_codes(B codes) { return codes; }
NC_INLINE void spread_values(B high, B next, U* out) {
  const __m128i low16 = _mm_unpacklo_epi8((__m128i)next, (__m128i)high);
  const __m128i high16 = _mm_unpackhi_epi8((__m128i)next, (__m128i)high);
  const __m128i zero = _mm_setzero_si128();
  out[0] = (U)_mm_unpacklo_epi16(zero, low16);
  out[1] = (U)_mm_unpackhi_epi16(zero, low16);
  out[2] = (U)_mm_unpacklo_epi16(zero, high16);
  out[3] = (U)_mm_unpackhi_epi16(zero, high16);
}
NC_INLINE H pair_first(B high, B low) { return (H)_mm_unpacklo_epi8((__m128i)low, (__m128i)high); }
NC_INLINE H pair_second(B high, B low) { return (H)_mm_unpackhi_epi8((__m128i)low, (__m128i)high); }
NC_INLINE B masks_of_pairs(H first, H second) { return (B)_mm_packs_epi16((__m128i)first, (__m128i)second); }
NC_INLINE H product_high(H a, H b) { return (H)_mm_mulhi_epu16((__m128i)a, (__m128i)b); }
NC_INLINE B part_codes(B codes) { return codes; }
#elif defined(__aarch64__)
NC_INLINE Raw split(const char* in) {
  const uint8x16x4_t bytes = vld4q_u8(reinterpret_cast<const uint8_t*>(in));
  return {(B)bytes.val[3], (B)bytes.val[2], (B)bytes.val[1], (B)bytes.val[0]};
}
NC_INLINE B join_codes(B codes) { return codes; }
NC_INLINE void spread_values(B high, B next, U* out) {
  const uint16x8_t low16 = (uint16x8_t)vzip1q_u8((uint8x16_t)next, (uint8x16_t)high);
  const uint16x8_t high16 = (uint16x8_t)vzip2q_u8((uint8x16_t)next, (uint8x16_t)high);
  out[0] = (U)vshll_n_u16(vget_low_u16(low16), 16);
  out[1] = (U)vshll_n_u16(vget_high_u16(low16), 16);
  out[2] = (U)vshll_n_u16(vget_low_u16(high16), 16);
  out[3] = (U)vshll_n_u16(vget_high_u16(high16), 16);
}
NC_INLINE H pair_first(B high, B low) { return (H)vzip1q_u8((uint8x16_t)low, (uint8x16_t)high); }
NC_INLINE H pair_second(B high, B low) { return (H)vzip2q_u8((uint8x16_t)low, (uint8x16_t)high); }
NC_INLINE B masks_of_pairs(H first, H second) { return (B)vuzp1q_u8((uint8x16_t)first, (uint8x16_t)second); }
NC_INLINE H product_high(H a, H b) {
  const uint16x8_t x = (uint16x8_t)a, y = (uint16x8_t)b;
  return (H)vcombine_u16(vshrn_n_u32(vmull_u16(vget_low_u16(x), vget_low_u16(y)), 16),
                         vshrn_n_u32(vmull_u16(vget_high_u16(x), vget_high_u16(y)), 16));
}
NC_INLINE B part_codes(B codes) { return codes; }
#endif

// Elements of one group of planes.
constexpr int kGroup8 = kBytes;

// fp32 -> one byte each.
template <class Step>
NC_INLINE void sweep_codes(const void* src, void* dst, int64_t n, Step& step) {
  const char* in = static_cast<const char*>(src);
  char* out = static_cast<char*>(dst);
  for (; n >= kGroup8; n -= kGroup8, in += 4 * kGroup8, out += kGroup8) store(out, join_codes(step.code(split(in))));
  if (n) {
    char values[4 * kGroup8] = {}, codes[kGroup8];
    __builtin_memcpy(values, in, 4 * n);
    store(codes, join_codes(step.code(split(values))));
    __builtin_memcpy(out, codes, n);
  }
}

// Four vectors of values from planes, in memory order. split leaves lane halves apart where vectors have two.
template <class Step>
NC_INLINE void values_of(const char* in, U* out, Step& step) {
  B high, next;
  step.value(split(in), high, next);
  U parts[4];
  spread_values(high, next, parts);
  for (int i = 0; i < 4; ++i) out[i] = parts[i];
}

// fp32 -> fp32, optionally past the cache.
template <class Step>
NC_INLINE void sweep_planes(const void* src, void* dst, int64_t n, bool stream, Step& step) {
  const char* in = static_cast<const char*>(src);
  char* out = static_cast<char*>(dst);
  U values[4];
  const auto part = [&](int64_t count) __attribute__((always_inline)) {
    char padded[4 * kGroup8] = {};
    __builtin_memcpy(padded, in, 4 * count);
    values_of(padded, values, step);
    __builtin_memcpy(out, values, 4 * count);
    in += 4 * count, out += 4 * count, n -= count;
  };
  const int64_t head = stream ? elements_to_line(dst) : -1;
  if (head >= 0 && head <= n) {
    if (head) part(head);
    for (; n >= kGroup8; n -= kGroup8, in += 4 * kGroup8, out += 4 * kGroup8) {
      values_of(in, values, step);
      for (int i = 0; i < 4; ++i) stream_line(out + i * kBytes, values[i]);
    }
    stream_fence();
  }
  for (; n >= kGroup8; n -= kGroup8, in += 4 * kGroup8, out += 4 * kGroup8) {
    values_of(in, values, step);
    for (int i = 0; i < 4; ++i) store(out + i * kBytes, values[i]);
  }
  if (n) part(n);
}
