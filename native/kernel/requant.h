// Accumulators -> 8-bit and 4-bit integers, or scaled fp32, by one multiplier or one a column.
//
// The multiplication follows the thread's rounding mode, so the caller asks nearest_even first.

static_assert(kPadding >= 4 * kLanes, "a group must not leave the parameter arrays");

// Activation: 0 none, 1 negative accumulators give +0, 2 they take another multiplier.
template <bool Integer, bool PerColumn, int Activation>
struct Scaled {
  struct Column {
    F scale, alpha;
  };

  const float* scale;
  const float* alpha;
  U smallest;  // of FP32 accumulators: twice the magnitude, less 1, so that a zero is the largest

  NC_ALWAYS explicit Scaled(const RequantRule& r) : scale(r.scale), alpha(r.alpha), smallest(all(~0u)) {}

  NC_ALWAYS Column at(int64_t column) const {
    if constexpr (PerColumn) return {load<F>(scale + column), Activation == 2 ? load<F>(alpha + column) : F{}};
    return {all_f(scale[0]), Activation == 2 ? all_f(alpha[0]) : F{}};
  }

  NC_ALWAYS uint32_t seen() const {
    const U subnormal = (U)(smallest < all(0x00FFFFFFu));
    return !Integer && largest_lane(subnormal) ? (uint32_t)SEEN_SUBNORMAL : 0u;
  }

  NC_ALWAYS U operator()(const char* in, const Column& by) {
    const U bits = load<U>(in);
    if constexpr (!Integer) smallest = umin(smallest, (bits << 1) - 1);
    const F x = Integer ? to_float((I)bits) : (F)bits;
    if constexpr (Activation == 0) return (U)(x * by.scale);
    const I negative = Integer ? (I)bits >> 31 : (I)((F)bits < F{});
    if constexpr (Activation == 1) return (U)(x * by.scale) & ~(U)negative;
    const F multiplier = (F)select(negative, (U)by.alpha, (U)by.scale);
    return (U)(x * multiplier) & ~((U)negative & (U)(multiplier == F{}));
  }
};

typedef int16_t W __attribute__((vector_size(kBytes)));

#if defined(__AVX2__)
NC_INLINE F at_most(F bound, F x) { return (F)_mm256_min_ps((__m256)bound, (__m256)x); }  // a NaN x stays
NC_INLINE I nearest_int(F x) { return (I)_mm256_cvtps_epi32((__m256)x); }
NC_INLINE W pair16(I a, I b) { return (W)_mm256_packs_epi32((__m256i)a, (__m256i)b); }
NC_INLINE W within16(W x, W low, W high) {
  return (W)_mm256_min_epi16(_mm256_max_epi16((__m256i)x, (__m256i)low), (__m256i)high);
}
NC_INLINE B join16(W a, W b) {
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  return (B)_mm256_permutevar8x32_epi32(_mm256_packus_epi16((__m256i)a, (__m256i)b), order);
}
#elif defined(__SSE4_1__)
NC_INLINE F at_most(F bound, F x) { return (F)_mm_min_ps((__m128)bound, (__m128)x); }
NC_INLINE I nearest_int(F x) { return (I)_mm_cvtps_epi32((__m128)x); }
NC_INLINE W pair16(I a, I b) { return (W)_mm_packs_epi32((__m128i)a, (__m128i)b); }
NC_INLINE W within16(W x, W low, W high) {
  return (W)_mm_min_epi16(_mm_max_epi16((__m128i)x, (__m128i)low), (__m128i)high);
}
NC_INLINE B join16(W a, W b) { return (B)_mm_packus_epi16((__m128i)a, (__m128i)b); }
#elif defined(__aarch64__)
NC_INLINE F at_most(F bound, F x) { return (F)vminq_f32((float32x4_t)bound, (float32x4_t)x); }
NC_INLINE I nearest_int(F x) { return (I)vcvtnq_s32_f32((float32x4_t)x); }
NC_INLINE W pair16(I a, I b) {
  return (W)vcombine_s16(vqmovn_s32((int32x4_t)a), vqmovn_s32((int32x4_t)b));
}
NC_INLINE W within16(W x, W low, W high) {
  return (W)vminq_s16(vmaxq_s16((int16x8_t)x, (int16x8_t)low), (int16x8_t)high);
}
NC_INLINE B join16(W a, W b) {
  return (B)vcombine_u8(vqmovun_s16((int16x8_t)a), vqmovun_s16((int16x8_t)b));
}
#endif
NC_INLINE W all16(int32_t x) { return (int16_t)x - W{}; }

// Rounds half to even and clamps to the intermediate, adds the offset, clamps to the target; in 16-bit lanes, whose
// order pair16 chooses and join16 undoes.
template <bool Integer, bool PerColumn, int Activation>
struct Requant {
  using Product = Scaled<Integer, PerColumn, Activation>;
  struct Columns {
    typename Product::Column product[4];
    W offset[2];
  };

  Product product;
  const int32_t* offset;
  W inner_low, inner_high, low, high, mask;

  NC_ALWAYS explicit Requant(const RequantRule& r)
      : product(r), offset(r.offset), inner_low(all16(r.inner_low)), inner_high(all16(r.inner_high)),
        low(all16(r.low)), high(all16(r.high)), mask(all16((int32_t)r.mask)) {}

  NC_ALWAYS void columns(Columns& by, int part, int64_t column) const {
    by.product[2 * part] = product.at(column);
    by.product[2 * part + 1] = product.at(column + kLanes);
    if constexpr (PerColumn)
      by.offset[part] = pair16(load<I>(offset + column), load<I>(offset + column + kLanes));
    else
      by.offset[part] = all16(offset[0]);
  }

  NC_ALWAYS uint32_t seen() const { return product.seen(); }

  NC_ALWAYS I whole(const char* in, const typename Product::Column& by) {
    F scaled = (F)product(in, by);
    // FP32 accumulators may be NaN, and an infinite one may meet a zero scale: 0.
    if constexpr (!Integer) scaled = (F)((U)scaled & (U)(scaled == scaled));
    // Only far above does the conversion need help: far below it gives the smallest integer.
    return nearest_int(at_most(all_f(1024.0f), scaled));
  }

  // Two vectors of accumulators.
  NC_ALWAYS W operator()(const char* in, const Columns& by, int part) {
    const W pair = pair16(whole(in, by.product[2 * part]), whole(in + kBytes, by.product[2 * part + 1]));
    return within16(within16(pair, inner_low, inner_high) + by.offset[part], low, high) & mask;
  }
};

// Rows that share the parameters they load.
template <int Rows, class Step>
NC_INLINE void requant_group(const char* in, int64_t in_stride, char* out, int64_t out_stride, int64_t columns,
                             Step& step) {
  constexpr int kGroup = 4 * kLanes;
  typename Step::Columns by;
  int64_t column = 0;
  for (; column + kGroup <= columns; column += kGroup) {
    step.columns(by, 0, column), step.columns(by, 1, column + 2 * kLanes);
    for (int row = 0; row < Rows; ++row) {
      const char* from = in + 4 * (row * in_stride + column);
      store(out + row * out_stride + column, join16(step(from, by, 0), step(from + 2 * kBytes, by, 1)));
    }
  }
  if (column == columns) return;
  step.columns(by, 0, column), step.columns(by, 1, column + 2 * kLanes);
  for (int row = 0; row < Rows; ++row) {
    char values[4 * kBytes] = {}, codes[kBytes];  // a padding zero is no subnormal
    __builtin_memcpy(values, in + 4 * (row * in_stride + column), 4 * (columns - column));
    store(codes, join16(step(values, by, 0), step(values + 2 * kBytes, by, 1)));
    __builtin_memcpy(out + row * out_stride + column, codes, columns - column);
  }
}

// Rows of one fractal, 16 wide: with vectors of 8 lanes two rows make one store's worth.
template <class Step>
NC_INLINE void requant_by(const char* in, int64_t in_stride, char* out, int64_t out_stride, int64_t rows,
                          int64_t columns, Step& step) {
  int64_t row = 0;
  if (kLanes == 8 && columns == 16) {
    typename Step::Columns by;
    step.columns(by, 0, 0);
    for (; row + 2 <= rows; row += 2, in += 8 * in_stride, out += 2 * out_stride) {
      char both[kBytes];
      store(both, join16(step(in, by, 0), step(in + 4 * in_stride, by, 0)));
      __builtin_memcpy(out, both, 16);
      __builtin_memcpy(out + out_stride, both + 16, 16);
    }
  }
  for (; row + 4 <= rows; row += 4, in += 16 * in_stride, out += 4 * out_stride)
    requant_group<4>(in, in_stride, out, out_stride, columns, step);
  for (; row < rows; ++row, in += 4 * in_stride, out += out_stride)
    requant_group<1>(in, in_stride, out, out_stride, columns, step);
}

template <class Step>
NC_INLINE void scale_by(const char* in, int64_t in_stride, char* out, int64_t out_stride, int64_t rows,
                        int64_t columns, Step& step) {
  for (int64_t row = 0; row < rows; ++row, in += 4 * in_stride, out += 4 * out_stride) {
    int64_t column = 0;
    for (; column + kLanes <= columns; column += kLanes)
      store(out + 4 * column, step(in + 4 * column, step.at(column)));
    if (column == columns) continue;
    char values[kBytes] = {}, products[kBytes];
    __builtin_memcpy(values, in + 4 * column, 4 * (columns - column));
    store(products, step(values, step.at(column)));
    __builtin_memcpy(out + 4 * column, products, 4 * (columns - column));
  }
}

template <bool Integer, bool PerColumn, int Activation>
uint32_t requant_as(const void* src, int64_t in_stride, void* dst, int64_t out_stride, int64_t rows, int64_t columns,
                const RequantRule& rule, bool codes) {
  const char* in = static_cast<const char*>(src);
  char* out = static_cast<char*>(dst);
  if (codes) {
    Requant<Integer, PerColumn, Activation> step(rule);
    requant_by(in, in_stride, out, out_stride, rows, columns, step);
    return step.seen();
  }
  Scaled<Integer, PerColumn, Activation> step(rule);
  scale_by(in, in_stride, out, out_stride, rows, columns, step);
  return step.seen();
}

template <bool Integer, bool PerColumn>
uint32_t requant_with(const void* src, int64_t in_stride, void* dst, int64_t out_stride, int64_t rows, int64_t columns,
                      const RequantRule& rule, bool codes) {
  if (rule.alpha != nullptr)
    return requant_as<Integer, PerColumn, 2>(src, in_stride, dst, out_stride, rows, columns, rule, codes);
  if (rule.relu)
    return requant_as<Integer, PerColumn, 1>(src, in_stride, dst, out_stride, rows, columns, rule, codes);
  return requant_as<Integer, PerColumn, 0>(src, in_stride, dst, out_stride, rows, columns, rule, codes);
}

uint32_t requant_rows(const void* src, int64_t in_stride, void* dst, int64_t out_stride, int64_t rows,
                      int64_t columns, const RequantRule* rule, bool codes) {
  if (rule->integer)
    return rule->per_column ? requant_with<true, true>(src, in_stride, dst, out_stride, rows, columns, *rule, codes)
                            : requant_with<true, false>(src, in_stride, dst, out_stride, rows, columns, *rule, codes);
  return rule->per_column ? requant_with<false, true>(src, in_stride, dst, out_stride, rows, columns, *rule, codes)
                          : requant_with<false, false>(src, in_stride, dst, out_stride, rows, columns, *rule, codes);
}
