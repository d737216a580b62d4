// fp32 <-> the two 16-bit floats.

template <int Mode>
struct EncodeBf16 {
  U limit, nan_code;
  NanWatch watch;

  NC_ALWAYS U operator()(U bits) {
    const U a = bits & kAbs;
    watch.see(a);
    const U code = umin(round_shift<Mode>(a, all(16), (U)((I)bits >> 31)), limit);
    return select((I)(a > all(kInf)), nan_code, code | ((bits >> 16) & 0x8000u));
  }
};

template <int Mode>
NC_INLINE uint32_t encode_bf16_as(const void* src, void* dst, int64_t n, uint32_t limit, uint32_t nan_code) {
  EncodeBf16<Mode> step{all(limit), all(nan_code), {}};
  sweep<2>(src, dst, n, step);
  return step.watch.seen();
}

uint32_t encode_bf16(const void* src, void* dst, int64_t n, Rounding mode, uint32_t limit, uint32_t nan_code) {
  switch (mode) {
    case RN: return encode_bf16_as<RN>(src, dst, n, limit, nan_code);
    case RNA: return encode_bf16_as<RNA>(src, dst, n, limit, nan_code);
    case RD: return encode_bf16_as<RD>(src, dst, n, limit, nan_code);
    case RU: return encode_bf16_as<RU>(src, dst, n, limit, nan_code);
    case RZ: return encode_bf16_as<RZ>(src, dst, n, limit, nan_code);
    default: return encode_bf16_as<RO>(src, dst, n, limit, nan_code);
  }
}

#if defined(__F16C__)
// The hardware's conversion, which takes its mode from the instruction and never flushes a result. It rounds rz to
// the largest finite half from any magnitude; from 2^16 up we overflow in every mode. A subnormal fp32 read as zero
// changes neither rn nor rz, and `inexact` compares bits, so the flags of the thread do not matter.
template <int Mode>
struct EncodeFp16 {
  U limit, nan_code;
  NanWatch watch;

  NC_ALWAYS U operator()(U bits) {
    constexpr int kMode = Mode == RN ? _MM_FROUND_TO_NEAREST_INT : _MM_FROUND_TO_ZERO;
    const U a = bits & kAbs;
    watch.see(a);
    const __m128i half = _mm256_cvtps_ph((__m256)a, kMode | _MM_FROUND_NO_EXC);
    U code = (U)_mm256_cvtepu16_epi32(half);
    if constexpr (Mode == RO) code |= (U)((U)_mm256_cvtph_ps(half) != a) & 1u;
    if constexpr (Mode != RN) code = select((I)(a < all(0x47800000u)), code, all(0x7C00));
    code = umin(code, limit);
    return select((I)(a > all(kInf)), nan_code, code | ((bits >> 16) & 0x8000u));
  }
};

template <int Mode>
NC_INLINE uint32_t encode_fp16_f16c(const void* src, void* dst, int64_t n, uint32_t limit, uint32_t nan_code) {
  EncodeFp16<Mode> step{all(limit), all(nan_code), {}};
  sweep<2>(src, dst, n, step);
  return step.watch.seen();
}
#endif

template <int Mode>
NC_INLINE uint32_t encode_fp16_as(const void* src, void* dst, int64_t n, uint32_t limit, uint32_t nan_code) {
#if defined(__F16C__)
  if constexpr (Mode == RN || Mode == RZ || Mode == RO)
    return encode_fp16_f16c<Mode>(src, dst, n, limit, nan_code);
#endif
  return encode_minifloat_as<10, 113, 2, Mode>(src, dst, n, limit, nan_code);
}

uint32_t encode_fp16(const void* src, void* dst, int64_t n, Rounding mode, uint32_t limit, uint32_t nan_code) {
  switch (mode) {
    case RN: return encode_fp16_as<RN>(src, dst, n, limit, nan_code);
    case RNA: return encode_fp16_as<RNA>(src, dst, n, limit, nan_code);
    case RD: return encode_fp16_as<RD>(src, dst, n, limit, nan_code);
    case RU: return encode_fp16_as<RU>(src, dst, n, limit, nan_code);
    case RZ: return encode_fp16_as<RZ>(src, dst, n, limit, nan_code);
    default: return encode_fp16_as<RO>(src, dst, n, limit, nan_code);
  }
}

// Every NaN becomes the canonical one.
constexpr uint32_t kNan = 0x7FC00000u;

struct DecodeBf16 {
  NC_ALWAYS U operator()(U code) {
    const U value = code << 16;
    return select((I)((value & kAbs) > all(kInf)), all(kNan), value);
  }
};

// A subnormal half is its fraction, an integer, times 2^-24: exact, and no subnormal fp32 on the way.
struct DecodeFp16 {
  NC_ALWAYS U operator()(U code) {
    const U magnitude = code & 0x7FFFu;
    const U normal = (magnitude << 13) + (112u << 23);
    const U special = (magnitude << 13) | kInf;
    const U subnormal = (U)(to_float((I)magnitude) * all_f(0x1p-24f));
    U value = select((I)(magnitude < all(0x0400)), subnormal, normal);
    value = select((I)(magnitude > all(0x7BFF)), special, value) | ((code & 0x8000u) << 16);
    return select((I)(magnitude > all(0x7C00)), all(kNan), value);
  }
};

template <class Step>
NC_INLINE void sweep_halves(const void* src, void* dst, int64_t n, bool stream, Step step) {
  const char* in = static_cast<const char*>(src);
  char* out = static_cast<char*>(dst);
  if (stream && elements_to_line(dst) == 0) {
    for (; n >= kLanes; n -= kLanes, in += kBytes / 2, out += kBytes) stream_line(out, step(widen16(in)));
    stream_fence();
  }
  for (; n >= kLanes; n -= kLanes, in += kBytes / 2, out += kBytes) store(out, step(widen16(in)));
  if (n) {
    char codes[kBytes] = {}, values[kBytes];
    __builtin_memcpy(codes, in, 2 * n);
    store(values, step(widen16(codes)));
    __builtin_memcpy(out, values, 4 * n);
  }
}

void decode_fp16(const void* src, void* dst, int64_t n, bool stream) {
  sweep_halves(src, dst, n, stream, DecodeFp16{});
}

void decode_bf16(const void* src, void* dst, int64_t n, bool stream) {
  sweep_halves(src, dst, n, stream, DecodeBf16{});
}
