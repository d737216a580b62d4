// fp32 -> e4m3, e5m2, e2m1, ties to even, on byte planes.
//
// A binade keeps some of the 7 fraction bits. Adding half of the last kept bit's weight to the fraction carries into
// the exponent exactly when the magnitude rounds up to the next binade, whose kept bits are then all 0. Subnormal
// binades keep fewer bits, and one below the smallest value keeps none, its hidden bit being the half.

// For 3, 2, 1 and 0 kept bits: which of the top three bits stay, and the table index that shifts them down.
constexpr uint8_t kStay[4] = {0, 4, 6, 7};
constexpr uint8_t kPlace[4] = {15, 9, 8, 0};
constexpr Table16 kShiftDown = {{0, 1, 2, 3, 4, 5, 6, 7, 0, 0, 1, 0, 2, 1, 3, 0}};

// What lies above the largest value, NaN, and signs.
struct Ends8 {
  B limit;     // code of overflow
  B signless;  // a code that takes no sign: overflow that is NaN; 255 for none
  B nan_code;
  B over_high, over_next, over_sign;  // overflow as fp32 bytes, and which bits of the sign byte it keeps
  B nan_high, nan_next;
};

NC_INLINE Ends8 ends8(const Ends& e) {
  const bool over_is_nan = (e.over_value & kAbs) > kInf;
  return {all8((uint8_t)e.over_code), all8(over_is_nan ? (uint8_t)e.over_code : 0xFF), all8((uint8_t)e.nan_code),
          all8((uint8_t)(e.over_value >> 24)), all8((uint8_t)(e.over_value >> 16)), all8(over_is_nan ? 0 : 0x80),
          all8((uint8_t)(e.nan_value >> 24)), all8((uint8_t)(e.nan_value >> 16))};
}

NC_INLINE void compose(B sign, B exponent, B fraction, B& high, B& next) {
  high = (sign & 0x80) | ((exponent >> 1) & 0x7F);
  next = (exponent << 7) | fraction;
}

template <int FractionBits, int MinExponent, int MaxExponent, int MaxFraction>
struct Minifloat8 {
  static constexpr int kNormal = FractionBits + 2;               // class of every normal binade
  static constexpr int kBelow = MinExponent - FractionBits - 2;  // biased exponent of class 0
  static constexpr int kTop = MaxExponent + 1 - kBelow;          // first class of nothing but overflow

  static constexpr int kept(int group) { return group < 2 ? 0 : group > kNormal ? FractionBits : group - 2; }
  static constexpr Table16 half() {  // half of the last kept bit, less 1
    Table16 t{};
    for (int i = 0; i < 16; ++i) t.entry[i] = i == 0 ? 0 : i == 1 ? 127 : (64 >> kept(i)) - 1;
    return t;
  }
  static constexpr Table16 last() {  // last kept bit; 0: the hidden bit, odd; 0x80: none, even
    Table16 t{};
    for (int i = 0; i < 16; ++i) t.entry[i] = i < 2 ? 0x80 : kept(i) == 0 ? 0 : 0x80 >> kept(i);
    return t;
  }
  static constexpr Table16 keep() {  // kept bits of the fraction byte
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
  static constexpr Table16 subnormal() {  // code of the binade's first value
    Table16 t{};
    for (int i = 2; i < kNormal; ++i) t.entry[i] = (uint8_t)(1 << (i - 2));
    return t;
  }

  Ends8 ends;
  B nan = {};

  // Class of the rounded magnitude, from the class before: 0 and 1 are zero, kNormal and up normal.
  template <bool Away = false>
  NC_ALWAYS B round(const Planes& p, B below, B& fraction) const {
    const B group = min8(minus_or_0(p.exponent, below), all8(kTop));
    const B index = min8(group, all8(kNormal));
    const B odd_bit = look16(spread16(last()), index);
    const B odd = Away ? (B)(index != all8(0)) : (B)((p.fraction & odd_bit) == odd_bit);  // where a tie goes up
    fraction = p.fraction + look16(spread16(half()), index) - odd;
    return group - (B)((S8)fraction < 0);
  }

  // Code of the magnitude times 2^(kBelow - below).
  template <bool Away = false>
  NC_ALWAYS B magnitude(const Planes& p, B below) const {
    B fraction;
    const B group = round<Away>(p, below, fraction);
    const B index = min8(group, all8(kNormal));
    const B first = (minus_or_0(group, all8(kNormal - 1)) << FractionBits) + look16(spread16(subnormal()), index);
    const B top = (fraction >> 4) & look16(spread16(stay()), index);
    const B down = look16(spread16(kShiftDown), top + look16(spread16(place()), index));
    return min8(first + down, ends.limit);
  }

  NC_ALWAYS B code(const Raw& raw) {
    const Planes p = planes_of(raw);
    nan |= p.nan;
    const B code = magnitude(p, all8(kBelow));
    const B sign = p.sign & 0x80 & ~(B)(code == ends.signless);
    return pick(p.nan, ends.nan_code, code | sign);
  }

  NC_ALWAYS void value(const Raw& raw, B& high, B& next) {
    const Planes p = planes_of(raw);
    nan |= p.nan;
    B fraction;
    const B group = round(p, all8(kBelow), fraction);
    fraction &= look16(spread16(keep()), min8(group, all8(kNormal)));
    const B some = (B)(group > all8(1));
    const B exponent = (group + all8(kBelow)) & some;
    const B over = (B)(group > all8(MaxExponent - kBelow)) |
                   ((B)(group == all8(MaxExponent - kBelow)) & (B)(fraction > all8(MaxFraction)));
    compose(p.sign, exponent, fraction, high, next);
    high = pick(over, ends.over_high | (p.sign & ends.over_sign), high);
    next = pick(over, ends.over_next, next);
    high = pick(p.nan, ends.nan_high, high);
    next = pick(p.nan, ends.nan_next, next);
  }

  NC_ALWAYS uint32_t seen() const { return any8(nan) ? (uint32_t)SEEN_NAN : 0u; }
};

using E4m3 = Minifloat8<3, 121, 135, 0x60>;
using E5m2 = Minifloat8<2, 113, 142, 0x60>;
using E2m1 = Minifloat8<1, 127, 129, 0x40>;
