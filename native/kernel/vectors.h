// Vectors of one level: GNU vector types, and the few operations they do not spell.
//
// Included by a kernel unit only, inside its anonymous namespace: a function shared by two levels would let the
// linker keep the newer instructions for both.

#define NC_ALWAYS inline __attribute__((always_inline))
#define NC_INLINE static NC_ALWAYS

#if defined(__AVX2__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif
constexpr int kBytes = 4 * kLanes;

typedef uint32_t U __attribute__((vector_size(kBytes)));
typedef int32_t I __attribute__((vector_size(kBytes)));
typedef float F __attribute__((vector_size(kBytes)));
typedef uint16_t H __attribute__((vector_size(kBytes)));
typedef uint8_t B __attribute__((vector_size(kBytes)));

template <class V>
NC_INLINE V load(const void* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

template <class V>
NC_INLINE void store(void* p, V v) {
  __builtin_memcpy(p, &v, sizeof v);
}

NC_INLINE U all(uint32_t x) { return x - U{}; }
NC_INLINE F all_f(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return (F)all(bits);
}
NC_INLINE U select(I mask, U yes, U no) { return ((U)mask & yes) | (~(U)mask & no); }

NC_INLINE uint32_t largest_lane(U v) {
  uint32_t largest = 0;
  for (int i = 0; i < kLanes; ++i) largest = v[i] > largest ? v[i] : largest;
  return largest;
}

#if defined(__AVX2__)
NC_INLINE U umin(U a, U b) { return (U)_mm256_min_epu32((__m256i)a, (__m256i)b); }
NC_INLINE U umax(U a, U b) { return (U)_mm256_max_epu32((__m256i)a, (__m256i)b); }
NC_INLINE I imin(I a, I b) { return (I)_mm256_min_epi32((__m256i)a, (__m256i)b); }
NC_INLINE I imax(I a, I b) { return (I)_mm256_max_epi32((__m256i)a, (__m256i)b); }
// Either operand where one is NaN.
NC_INLINE F fmin(F a, F b) { return (F)_mm256_min_ps((__m256)a, (__m256)b); }
NC_INLINE F fmax(F a, F b) { return (F)_mm256_max_ps((__m256)a, (__m256)b); }
// Each lane of a..d holds at most 16 bits: narrow to 16-bit lanes, in order.
NC_INLINE H narrow16(U a, U b) {
  return (H)_mm256_permute4x64_epi64(_mm256_packus_epi32((__m256i)a, (__m256i)b), 0xD8);
}
// Each lane holds at most 8 bits.
NC_INLINE B narrow8(U a, U b, U c, U d) {
  const __m256i low = _mm256_packus_epi32((__m256i)a, (__m256i)b);
  const __m256i high = _mm256_packus_epi32((__m256i)c, (__m256i)d);
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  return (B)_mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, high), order);
}
// 16-bit lanes holding at most 8 bits.
NC_INLINE B join_bytes(H a, H b) {
  return (B)_mm256_permute4x64_epi64(_mm256_packus_epi16((__m256i)a, (__m256i)b), 0xD8);
}
NC_INLINE H widen_bytes(const void* p) {
  return (H)_mm256_cvtepu8_epi16(_mm_loadu_si128(static_cast<const __m128i*>(p)));
}
NC_INLINE U widen16(const void* p) {
  return (U)_mm256_cvtepu16_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p)));
}
NC_INLINE U widen8(const void* p) {
  return (U)_mm256_cvtepu8_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(p)));
}
// Ties to even whatever the thread's rounding mode is.
NC_INLINE F rint_even(F x) { return (F)_mm256_round_ps((__m256)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
NC_INLINE I to_int(F x) { return (I)_mm256_cvttps_epi32((__m256)x); }
NC_INLINE F to_float(I x) { return (F)_mm256_cvtepi32_ps((__m256i)x); }
// Counts of 32 and more give 0.
NC_INLINE U shift_right(U x, U count) { return (U)_mm256_srlv_epi32((__m256i)x, (__m256i)count); }
NC_INLINE U shift_left(U x, U count) { return (U)_mm256_sllv_epi32((__m256i)x, (__m256i)count); }
NC_INLINE void stream_line(void* p, U v) { _mm256_stream_si256(static_cast<__m256i*>(p), (__m256i)v); }

#elif defined(__SSE4_1__)
NC_INLINE U umin(U a, U b) { return (U)_mm_min_epu32((__m128i)a, (__m128i)b); }
NC_INLINE U umax(U a, U b) { return (U)_mm_max_epu32((__m128i)a, (__m128i)b); }
NC_INLINE I imin(I a, I b) { return (I)_mm_min_epi32((__m128i)a, (__m128i)b); }
NC_INLINE I imax(I a, I b) { return (I)_mm_max_epi32((__m128i)a, (__m128i)b); }
NC_INLINE F fmin(F a, F b) { return (F)_mm_min_ps((__m128)a, (__m128)b); }
NC_INLINE F fmax(F a, F b) { return (F)_mm_max_ps((__m128)a, (__m128)b); }
NC_INLINE H narrow16(U a, U b) { return (H)_mm_packus_epi32((__m128i)a, (__m128i)b); }
NC_INLINE B narrow8(U a, U b, U c, U d) {
  return (B)_mm_packus_epi16(_mm_packus_epi32((__m128i)a, (__m128i)b), _mm_packus_epi32((__m128i)c, (__m128i)d));
}
NC_INLINE B join_bytes(H a, H b) { return (B)_mm_packus_epi16((__m128i)a, (__m128i)b); }
NC_INLINE H widen_bytes(const void* p) {
  return (H)_mm_cvtepu8_epi16(_mm_loadl_epi64(static_cast<const __m128i*>(p)));
}
NC_INLINE U widen16(const void* p) {
  return (U)_mm_cvtepu16_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(p)));
}
NC_INLINE U widen8(const void* p) {
  int word;
  __builtin_memcpy(&word, p, sizeof word);
  return (U)_mm_cvtepu8_epi32(_mm_cvtsi32_si128(word));
}
NC_INLINE F rint_even(F x) { return (F)_mm_round_ps((__m128)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
NC_INLINE I to_int(F x) { return (I)_mm_cvttps_epi32((__m128)x); }
NC_INLINE F to_float(I x) { return (F)_mm_cvtepi32_ps((__m128i)x); }
// SSE has no shift by lane: a left shift multiplies by 2^count, and a right shift keeps the bits above count
// after as many conditional shifts as a count has bits.
NC_INLINE U shift_left(U x, U count) {
  const U power = (U)to_int((F)((umin(count, all(31)) + 127) << 23));
  return (U)((I)(count < all(32))) & (U)_mm_mullo_epi32((__m128i)x, (__m128i)power);
}
NC_INLINE U shift_right(U x, U count) {
  x = select((I)(count << 31) < 0, x >> 1, x);
  x = select((I)(count << 30) < 0, x >> 2, x);
  x = select((I)(count << 29) < 0, x >> 4, x);
  x = select((I)(count << 28) < 0, x >> 8, x);
  x = select((I)(count << 27) < 0, x >> 16, x);
  return x & (U)(count < all(32));
}
NC_INLINE void stream_line(void* p, U v) { _mm_stream_si128(static_cast<__m128i*>(p), (__m128i)v); }

#elif defined(__aarch64__)
NC_INLINE U umin(U a, U b) { return (U)vminq_u32((uint32x4_t)a, (uint32x4_t)b); }
NC_INLINE U umax(U a, U b) { return (U)vmaxq_u32((uint32x4_t)a, (uint32x4_t)b); }
NC_INLINE I imin(I a, I b) { return (I)vminq_s32((int32x4_t)a, (int32x4_t)b); }
NC_INLINE I imax(I a, I b) { return (I)vmaxq_s32((int32x4_t)a, (int32x4_t)b); }
NC_INLINE F fmin(F a, F b) { return (F)vminq_f32((float32x4_t)a, (float32x4_t)b); }
NC_INLINE F fmax(F a, F b) { return (F)vmaxq_f32((float32x4_t)a, (float32x4_t)b); }
NC_INLINE H narrow16(U a, U b) { return (H)vcombine_u16(vmovn_u32((uint32x4_t)a), vmovn_u32((uint32x4_t)b)); }
NC_INLINE B narrow8(U a, U b, U c, U d) {
  const uint16x8_t low = (uint16x8_t)narrow16(a, b);
  const uint16x8_t high = (uint16x8_t)narrow16(c, d);
  return (B)vcombine_u8(vmovn_u16(low), vmovn_u16(high));
}
NC_INLINE B join_bytes(H a, H b) {
  return (B)vcombine_u8(vmovn_u16((uint16x8_t)a), vmovn_u16((uint16x8_t)b));
}
NC_INLINE H widen_bytes(const void* p) { return (H)vmovl_u8(vld1_u8(static_cast<const uint8_t*>(p))); }
NC_INLINE U widen16(const void* p) { return (U)vmovl_u16(vld1_u16(static_cast<const uint16_t*>(p))); }
NC_INLINE U widen8(const void* p) {
  uint64_t word = 0;
  __builtin_memcpy(&word, p, 4);
  return (U)vmovl_u16(vget_low_u16(vmovl_u8(vcreate_u8(word))));
}
NC_INLINE F rint_even(F x) { return (F)vrndnq_f32((float32x4_t)x); }
NC_INLINE I to_int(F x) { return (I)vcvtq_s32_f32((float32x4_t)x); }
NC_INLINE F to_float(I x) { return (F)vcvtq_f32_s32((int32x4_t)x); }
// NEON takes the count from the low byte; a negative one shifts right. 32 to 127 give 0.
NC_INLINE U shift_left(U x, U count) {
  return (U)vshlq_u32((uint32x4_t)x, (int32x4_t)umin(count, all(64)));
}
NC_INLINE U shift_right(U x, U count) {
  return (U)vshlq_u32((uint32x4_t)x, vnegq_s32((int32x4_t)umin(count, all(64))));
}
NC_INLINE void stream_line(void* p, U v) { store(p, v); }
#endif
