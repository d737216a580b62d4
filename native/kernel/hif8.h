// fp32 -> HiF8, ties away or hybrid, on byte planes.

// HiF8 groups binades by the size of their exponent: 3 fraction bits for |E| <= 3, 2 up to 7, 1 up to 15; E < -15 has
// none, and E > 15 is overflow.
struct Hif8 {
  static constexpr int kBias = 127, kMax = 15, kTiny = kBias - 23;

  static constexpr int kept(int size) { return size < 4 ? 3 : size < 8 ? 2 : 1; }
  // Half of the last kept bit, xor that of a binade without fraction: what look16_or_0 gives for 16 and more is 0.
  static constexpr Table16 half() {
    Table16 t{};
    for (int i = 0; i < 16; ++i) t.entry[i] = (uint8_t)((64 >> kept(i)) ^ 64);
    return t;
  }
  static constexpr Table16 keep() {
    Table16 t{};
    for (int i = 0; i < 16; ++i) t.entry[i] = (uint8_t)(0x7F & ~(0x7F >> kept(i)));
    return t;
  }
  static constexpr Table16 stay() {
    Table16 t{};
    for (int i = 0; i < 16; ++i) t.entry[i] = kStay[kept(i)];
    return t;
  }
  static constexpr Table16 place() {
    Table16 t{};
    for (int i = 0; i < 16; ++i) t.entry[i] = kPlace[kept(i)];
    return t;
  }
  // Code of +2^size, and what a negative exponent adds.
  static constexpr Table16 first() {
    return {{0x08, 0x10, 0x20, 0x28, 0x40, 0x44, 0x48, 0x4C, 0x60, 0x62, 0x64, 0x66, 0x68, 0x6A, 0x6C, 0x6E}};
  }
  static constexpr Table16 inverse() {
    return {{0, 8, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16}};
  }

  Ends8 ends;
  B nan = {};

  NC_ALWAYS static S8 exponent_of(const Planes& p) { return (S8)(min8(p.exponent, all8(200)) - kBias); }
  NC_ALWAYS static B half_of(B size) { return look16_or_0(spread16(half()), size) ^ 64; }

  // Exponent, less its bias, after rounding; only the kept bits of the fraction are final. `lost` marks magnitudes
  // that become zero.
  NC_ALWAYS S8 round(const Raw&, const Planes& p, B& fraction, B& lost) {
    const S8 exponent = exponent_of(p);
    fraction = p.fraction + half_of(size_of((B)exponent));
    lost = (B)(p.exponent < all8(kTiny));
    return exponent - ((S8)fraction < 0);
  }

  NC_ALWAYS uint32_t seen() const { return any8(nan) ? (uint32_t)SEEN_NAN : 0u; }
};

// Hybrid rounding: the first 14 discarded bits against the operand's own low 14; |E| <= 3 rounds ties away. At 2^-23
// the hidden bit is the first discarded one, and what does not go up is lost.
template <int Compare>
struct Hif8Hybrid : Hif8 {
  // 4 times this shifts the kept bits out of the top of a 14-bit field: 2^(7 + kept bits), and 2^6 for 2^-23.
  static constexpr Table16 mover() {
    Table16 t{};
    for (int i = 0; i < 16; ++i) t.entry[i] = (uint8_t)((0x20 << kept(i)) ^ 0x20);
    return t;
  }

  NC_ALWAYS static H up_of(H upper, H lower, H mover) {
    constexpr uint16_t kLow = 0x3FFF;
    const S16 discarded = (S16)((((upper << 2) * mover) & kLow) | product_high(lower, mover << 2));
    const S16 threshold = (S16)(lower & kLow);
    if constexpr (Compare == GT) return (H)(discarded > threshold);
    if constexpr (Compare == GE) return (H)(discarded >= threshold);
    return (H)(discarded >= threshold) & (H)(discarded != S16{});
  }

  NC_ALWAYS S8 round(const Raw& raw, const Planes& p, B& fraction, B& lost) {
    const S8 exponent = exponent_of(p);
    const B size = size_of((B)exponent);
    const B tiny = (B)(p.exponent == all8(kTiny));
    B mover = look16_or_0(spread16(Hif8Hybrid::mover()), size) ^ 0x20;
    mover = pick(tiny, all8(0x10), mover);
    const B upper = (raw.next & 0x7F) | (tiny & 0x80);
    const B up = masks_of_pairs(
        up_of(pair_first(B{}, upper), pair_first(raw.third, raw.low), pair_first(B{}, mover)),
        up_of(pair_second(B{}, upper), pair_second(raw.third, raw.low), pair_second(B{}, mover)));
    const B half = half_of(size);
    const B near_one = (B)((S8)size < 4);
    // Going up adds the last kept bit's whole weight to the kept bits alone.
    const B kept_only = p.fraction & ~(half + half - 1);
    fraction = pick(near_one, p.fraction + half, kept_only + ((half + half) & up));
    lost = (B)(p.exponent < all8(kTiny)) | (tiny & ~up);
    return exponent - ((S8)fraction < 0);
  }
};

// HiF8 codes and values, rounded as Rule says.
template <class Rule>
struct Hif8Step : Rule {
  using Rule::ends, Rule::nan, Rule::kBias, Rule::kMax, Rule::kTiny;

  NC_ALWAYS B code(const Raw& raw) {
    const Planes p = planes_of(raw);
    nan |= p.nan;
    B fraction, lost;
    const S8 exponent = this->round(raw, p, fraction, lost);
    const B size = size_of((B)exponent);
    const B negative = (B)(exponent < 0);
    const B first_code = look16_or_0(spread16(Rule::first()), size) + (look16_or_0(spread16(Rule::inverse()), size) & negative);
    const B top = (fraction >> 4) & look16_or_0(spread16(Rule::stay()), size);
    const B down = look16(spread16(kShiftDown), top + look16_or_0(spread16(Rule::place()), size));
    // Powers of two from 2^-22; all of [2^-23, 2^-22) goes to the lowest.
    const B power = max8(minus_or_0(all8(23), size), all8(1)) & ~lost;
    B code = first_code + down;
    code = pick((B)((S8)size > kMax), power, code);
    const B over = (B)(exponent > kMax) | (B)(code == all8(0x6F));
    code = pick(over, ends.limit, code);
    const B sign = p.sign & 0x80 & ~(B)(code == all8(0));
    return pick(p.nan, ends.nan_code, code | sign);
  }

  NC_ALWAYS void value(const Raw& raw, B& high, B& next) {
    const Planes p = planes_of(raw);
    nan |= p.nan;
    B fraction, lost;
    const S8 exponent = this->round(raw, p, fraction, lost);
    fraction &= look16_or_0(spread16(Rule::keep()), size_of((B)exponent));
    const B biased = max8((B)exponent + kBias, all8(kTiny + 1)) & ~lost;
    const B over = (B)(exponent > kMax) | ((B)(exponent == kMax) & (B)(fraction != all8(0)));
    compose(p.sign & ~lost, biased, fraction, high, next);
    high = pick(over, ends.over_high | (p.sign & 0x80), high);
    next = pick(over, ends.over_next, next);
    high = pick(p.nan, ends.nan_high, high);
    next = pick(p.nan, ends.nan_next, next);
  }
};

template <class Step>
NC_INLINE uint32_t encode_as(const void* src, void* dst, int64_t n, const Ends& ends) {
  Step step{};
  step.ends = ends8(ends);
  sweep_codes(src, dst, n, step);
  return step.seen();
}

template <class Step>
NC_INLINE uint32_t round_as(const void* src, void* dst, int64_t n, const Ends& ends, bool stream) {
  Step step{};
  step.ends = ends8(ends);
  sweep_planes(src, dst, n, stream, step);
  return step.seen();
}

uint32_t encode_float8(const void* src, void* dst, int64_t n, Float8 target, const Ends* ends) {
  switch (target) {
    case E4M3: return encode_as<E4m3>(src, dst, n, *ends);
    case E5M2: return encode_as<E5m2>(src, dst, n, *ends);
    default: return encode_as<Hif8Step<Hif8>>(src, dst, n, *ends);
  }
}

uint32_t round_float8(const void* src, void* dst, int64_t n, Float8 target, const Ends* ends, bool stream) {
  switch (target) {
    case E4M3: return round_as<E4m3>(src, dst, n, *ends, stream);
    case E5M2: return round_as<E5m2>(src, dst, n, *ends, stream);
    case E2M1: return round_as<E2m1>(src, dst, n, *ends, stream);
    default: return round_as<Hif8Step<Hif8>>(src, dst, n, *ends, stream);
  }
}

uint32_t encode_hybrid(const void* src, void* dst, int64_t n, HybridCompare compare, const Ends* ends) {
  switch (compare) {
    case GE: return encode_as<Hif8Step<Hif8Hybrid<GE>>>(src, dst, n, *ends);
    case GT: return encode_as<Hif8Step<Hif8Hybrid<GT>>>(src, dst, n, *ends);
    default: return encode_as<Hif8Step<Hif8Hybrid<GE_NONZERO>>>(src, dst, n, *ends);
  }
}

uint32_t round_hybrid(const void* src, void* dst, int64_t n, HybridCompare compare, const Ends* ends, bool stream) {
  switch (compare) {
    case GE: return round_as<Hif8Step<Hif8Hybrid<GE>>>(src, dst, n, *ends, stream);
    case GT: return round_as<Hif8Step<Hif8Hybrid<GT>>>(src, dst, n, *ends, stream);
    default: return round_as<Hif8Step<Hif8Hybrid<GE_NONZERO>>>(src, dst, n, *ends, stream);
  }
}
