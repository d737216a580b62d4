// Block scaling: the largest magnitude of a block, its scale byte by a table of the rule, and the elements' codes, in
// one pass over a row.
//
// The scale is a power of two, so applying it is an addition to the exponent plane, and the elements are then encoded
// as they are without a block.

using E1m2 = Minifloat8<2, 127, 127, 0x60>;
using E3m2 = Minifloat8<2, 125, 131, 0x60>;
using E2m3 = Minifloat8<3, 127, 129, 0x70>;

#if defined(__AVX2__)
NC_INLINE uint32_t largest_of(U v) {
  __m128i m = _mm_max_epu32(_mm256_castsi256_si128((__m256i)v), _mm256_extracti128_si256((__m256i)v, 1));
  m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0x4E));
  m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0xB1));
  return (uint32_t)_mm_cvtsi128_si32(m);
}
#elif defined(__SSE4_1__)
NC_INLINE uint32_t largest_of(U v) {
  __m128i m = _mm_max_epu32((__m128i)v, _mm_shuffle_epi32((__m128i)v, 0x4E));
  m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0xB1));
  return (uint32_t)_mm_cvtsi128_si32(m);
}
#elif defined(__aarch64__)
NC_INLINE uint32_t largest_of(U v) { return vmaxvq_u32((uint32x4_t)v); }
#endif

constexpr int kMxGroup = 32;  // a block is a multiple of it

// How elements are written: bits of a code, and whether two 4-bit codes share a byte, the even one low.
template <int Bits, bool Packed>
struct MxOut {
  static constexpr int64_t bytes(int64_t elements) { return Packed ? (elements + 1) / 2 : elements; }

  NC_ALWAYS static B sign_of(B sign) { return Bits < 8 ? (B)((H)sign >> (8 - Bits)) : sign; }

  NC_ALWAYS static void put(char* out, B codes) {
    if constexpr (Packed) {
      const H pairs = (H)codes;
      const H packed = (pairs & 0x0F) | ((pairs >> 4) & 0xF0);
      const B both = join_bytes(packed, packed);
      __builtin_memcpy(out, &both, kBytes / 2);
    } else {
      store(out, codes);
    }
  }

  // Every element the same, the unused half of a last byte 0.
  NC_ALWAYS static void fill(char* out, int code, int64_t elements) {
    __builtin_memset(out, Packed ? code * 0x11 : code, bytes(elements));
    if (Packed && elements % 2) out[elements / 2] = (char)code;
  }
};

template <class Format, class Out, bool Away, bool DropNegative>
NC_INLINE void mx_group(const char* in, char* out, B below, const Format& format) {
  for (int i = 0; i < kMxGroup; i += kGroup8) {
    const Planes p = planes_of(split(in + 4 * i));
    B sign = p.sign & 0x80;
    if constexpr (DropNegative) sign &= ~(B)((p.exponent | p.fraction) == all8(0));
    Out::put(out + Out::bytes(i), join_codes(format.template magnitude<Away>(p, below) | Out::sign_of(sign)));
  }
}

// Codes of `n` elements that share a scale; a short group is padded on the stack.
template <class Format, class Out, bool Away, bool DropNegative>
NC_INLINE void mx_elements(const char* in, char* out, int64_t n, B below, const Format& format) {
  for (; n >= kMxGroup; n -= kMxGroup, in += 4 * kMxGroup, out += Out::bytes(kMxGroup))
    mx_group<Format, Out, Away, DropNegative>(in, out, below, format);
  if (n) {
    char values[4 * kMxGroup] = {}, codes[kMxGroup];
    __builtin_memcpy(values, in, 4 * n);
    mx_group<Format, Out, Away, DropNegative>(values, codes, below, format);
    __builtin_memcpy(out, codes, Out::bytes(n));
  }
}

NC_INLINE U mx_largest(const char* in) {
  U largest = {};
  for (int i = 0; i < 4 * kMxGroup; i += kBytes) largest = umax(largest, load<U>(in + i) & kAbs);
  return largest;
}

NC_INLINE uint32_t mx_block_largest(const char* in, int64_t n) {
  U largest = {};
  for (; n >= kMxGroup; n -= kMxGroup, in += 4 * kMxGroup) largest = umax(largest, mx_largest(in));
  if (n) {
    char values[4 * kMxGroup] = {};
    __builtin_memcpy(values, in, 4 * n);
    largest = umax(largest, mx_largest(values));
  }
  return largest_of(largest);
}

// Without a branch on the data: which side of the threshold a block lies on is a coin toss.
NC_INLINE int mx_byte(const MxRule& rule, uint32_t largest) {
  const uint32_t field = largest >> 23;
  const int stepped = -(int)((largest & 0x7FFFFFu) >= rule.threshold[field]);
  return rule.low[field] ^ ((rule.low[field] ^ rule.high[field]) & stepped);
}

// Scale bytes from here to 254 leave nothing to decide but by exponent planes.
template <class Format>
constexpr int kFirstByte = 127 - Format::kBelow;

// What becomes of a block outside them, or with an infinity: tiny ones, whose elements may be fp32 subnormals, and an
// infinity that counts as a number are left to the caller.
enum MxRare : int { MX_SIGNS = 255, MX_NAN = 256, MX_UNDECIDED = 257 };

NC_INLINE int mx_rare(const MxRule& rule, int byte, uint32_t largest) {
  if (byte == 255) return MX_NAN;
  return largest == 0 || (byte == 0 && rule.flush_byte0) ? MX_SIGNS : MX_UNDECIDED;
}

constexpr int kMxBatch = 32;  // blocks whose bytes are found before their elements are encoded

template <class Format, class Out, bool Away, bool DropNegative>
NC_INLINE uint32_t mx_row_as(const char* in, char* out, uint8_t* scale, int64_t n, int64_t size, const MxRule& rule) {
  const Format format{ends8({rule.limit_code, 0, 0, 0}), {}};
  uint32_t seen = 0;
  while (n > 0) {
    // The largest magnitudes first: their way through the table is long, and blocks wait for nothing of each other.
    const int blocks = (int)(n < kMxBatch * size ? (n + size - 1) / size : kMxBatch);
    uint16_t below[kMxBatch];
    uint32_t rare = 0;
    for (int i = 0; i < blocks; ++i) {
      const char* block = in + 4 * size * i;
      const int64_t left = n - size * i, count = left < size ? left : size;
      const uint32_t largest = count == kMxGroup ? largest_of(mx_largest(block)) : mx_block_largest(block, count);
      const int byte = mx_byte(rule, largest);
      scale[i] = (uint8_t)byte;
      below[i] = (uint16_t)(byte - kFirstByte<Format>);
      if (__builtin_expect(below[i] > 254 - kFirstByte<Format> || largest >= kInf, 0)) {
        below[i] = (uint16_t)mx_rare(rule, byte, largest);
        rare |= 1;
      }
    }
    if (size == kMxGroup && !rare && n >= kMxGroup * blocks) {
      for (int i = 0; i < blocks; ++i, in += 4 * kMxGroup, out += Out::bytes(kMxGroup))
        mx_group<Format, Out, Away, DropNegative>(in, out, all8((uint8_t)below[i]), format);
      n -= kMxGroup * blocks;
    } else {
      for (int i = 0; i < blocks; ++i, n -= size, in += 4 * size, out += Out::bytes(size)) {
        const int64_t count = n < size ? n : size;
        if (below[i] == MX_NAN) {
          Out::fill(out, rule.nan_code, count);
          continue;
        }
        if (below[i] == MX_UNDECIDED) seen |= SEEN_UNDECIDED;
        mx_elements<Format, Out, Away, DropNegative>(in, out, count, all8((uint8_t)below[i]), format);
      }
    }
    scale += blocks;
  }
  return seen;
}

template <class Format, class Out>
NC_INLINE uint32_t mx_row_of(const void* src, void* codes, void* scales, int64_t n, int64_t block, bool away,
                             const MxRule& rule) {
  const char* in = static_cast<const char*>(src);
  char* out = static_cast<char*>(codes);
  uint8_t* scale = static_cast<uint8_t*>(scales);
  if (away)
    return rule.drop_negative ? mx_row_as<Format, Out, true, true>(in, out, scale, n, block, rule)
                              : mx_row_as<Format, Out, true, false>(in, out, scale, n, block, rule);
  return rule.drop_negative ? mx_row_as<Format, Out, false, true>(in, out, scale, n, block, rule)
                            : mx_row_as<Format, Out, false, false>(in, out, scale, n, block, rule);
}

uint32_t mx_row(const void* src, void* codes, void* scales, int64_t n, int64_t block, bool away, const MxRule* rule) {
  switch (rule->element) {
    case MX_E4M3: return mx_row_of<E4m3, MxOut<8, false>>(src, codes, scales, n, block, away, *rule);
    case MX_E5M2: return mx_row_of<E5m2, MxOut<8, false>>(src, codes, scales, n, block, away, *rule);
    case MX_E2M1: return mx_row_of<E2m1, MxOut<4, false>>(src, codes, scales, n, block, away, *rule);
    case MX_E1M2: return mx_row_of<E1m2, MxOut<4, false>>(src, codes, scales, n, block, away, *rule);
    case MX_E3M2: return mx_row_of<E3m2, MxOut<6, false>>(src, codes, scales, n, block, away, *rule);
    case MX_E2M3: return mx_row_of<E2m3, MxOut<6, false>>(src, codes, scales, n, block, away, *rule);
    case MX_E2M1X2: return mx_row_of<E2m1, MxOut<4, true>>(src, codes, scales, n, block, away, *rule);
    default: return mx_row_of<E1m2, MxOut<4, true>>(src, codes, scales, n, block, away, *rule);
  }
}
