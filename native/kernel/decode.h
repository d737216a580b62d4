// 8-bit codes -> fp32 by a table of 256 values.

NC_INLINE void look_up32(const uint8_t* codes, const uint32_t* table, char* out, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    uint64_t word;
    __builtin_memcpy(&word, codes + i, 8);
    for (int k = 0; k < 8; ++k) __builtin_memcpy(out + 4 * (i + k), &table[(word >> (8 * k)) & 0xFF], 4);
  }
  for (; i < n; ++i) __builtin_memcpy(out + 4 * i, &table[codes[i]], 4);
}

// A table whose values fit the upper 16 bits of an fp32, and whose upper half is its lower half with the sign set, but
// for one run of NaN codes: every 8-bit float, and every format of at most 7 bits. Eight registers of 16 entries hold a
// byte of each value; the code's bits 4 to 6 choose among eight lookups of its low four.
struct Mirrored {
  Table16 high[8], next[8];
  uint8_t first_nan = 0, more_nan = 0;  // the run of NaN codes without a sign
  bool some_nan = false;

  // Whether the table has this form.
  NC_ALWAYS bool read(const uint32_t* table) {
    int last_nan = 0;
    for (int code = 0; code < 128; ++code) {
      const uint32_t value = table[code], negative = table[code + 128];
      high[code / 16].entry[code % 16] = (uint8_t)(value >> 24);
      next[code / 16].entry[code % 16] = (uint8_t)(value >> 16);
      if ((value | negative) & 0xFFFF) return false;
      if (negative == (value | 0x80000000u)) continue;
      if (negative != kNan || (some_nan && last_nan != code - 1)) return false;
      if (!some_nan) first_nan = (uint8_t)(code + 128);
      some_nan = true, last_nan = code;
    }
    more_nan = some_nan ? (uint8_t)(last_nan + 128 - first_nan) : 0;
    return true;
  }

  NC_ALWAYS B choose(const Table16* tables, B low, B bit4, B bit5, B bit6) const {
    B half[2];
    for (int i = 0; i < 2; ++i) {
      const Table16* t = tables + 4 * i;
      const B first = pick_by_top(bit4, look16(spread16(t[1]), low), look16(spread16(t[0]), low));
      const B second = pick_by_top(bit4, look16(spread16(t[3]), low), look16(spread16(t[2]), low));
      half[i] = pick_by_top(bit5, second, first);
    }
    return pick_by_top(bit6, half[1], half[0]);
  }

  NC_ALWAYS void values(const uint8_t* codes, U* out) const {
    const B code = part_codes(load<B>(codes));
    const B low = code & 0x0F;
    const B bit4 = (B)((H)code << 3), bit5 = (B)((H)code << 2), bit6 = (B)((H)code << 1);
    B upper = choose(high, low, bit4, bit5, bit6) | (code & 0x80);
    B lower = choose(next, low, bit4, bit5, bit6);
    if (some_nan) {
      const B from_first = code - all8(first_nan);
      const B nan = (B)(min8(from_first, all8(more_nan)) == from_first);
      upper = pick(nan, all8((uint8_t)(kNan >> 24)), upper);
      lower = pick(nan, all8((uint8_t)(kNan >> 16)), lower);
    }
    spread_values(upper, lower, out);
  }
};

constexpr int64_t kWorthReading = 1024;  // codes from which preparing the registers pays

void decode_table8(const void* src, const void* table, void* dst, int64_t n, bool stream) {
  const uint8_t* codes = static_cast<const uint8_t*>(src);
  const uint32_t* entries = static_cast<const uint32_t*>(table);
  char* out = static_cast<char*>(dst);
  Mirrored mirrored;
  if (n >= kWorthReading && mirrored.read(entries)) {
    U values[4];
    const int64_t head = stream ? elements_to_line(dst) : -1;
    if (head >= 0) {
      look_up32(codes, entries, out, head);
      codes += head, out += 4 * head, n -= head;
      for (; n >= kGroup8; n -= kGroup8, codes += kGroup8, out += 4 * kGroup8) {
        mirrored.values(codes, values);
        for (int i = 0; i < 4; ++i) stream_line(out + i * kBytes, values[i]);
      }
      stream_fence();
    }
    for (; n >= kGroup8; n -= kGroup8, codes += kGroup8, out += 4 * kGroup8) {
      mirrored.values(codes, values);
      for (int i = 0; i < 4; ++i) store(out + i * kBytes, values[i]);
    }
  }
  look_up32(codes, entries, out, n);
}
