// Conversions by table. The index pass is arithmetic and vectorised; the lookups are scalar loads, which beat a
// gather.

constexpr int kBlock = 1024;  // elements whose indices wait on the stack

// (bits >> 18) | sticky: sign, exponent, four fraction bits, and one bit for the fifth and everything below it. The
// sum carries into bit 18 exactly when a discarded bit is set.
NC_INLINE U index14(U bits) {
  constexpr uint32_t kBelow = (1u << 18) - 1;
  return (bits | ((bits & kBelow) + kBelow)) >> 18;
}

struct Index14 {
  NanWatch watch;
  NC_ALWAYS U operator()(U bits) {
    watch.see(bits & kAbs);
    return index14(bits);
  }
};

// Eight lookups at a time: two loads of four indices each, one store of eight codes.
NC_INLINE void look_up8(const uint16_t* index, const uint8_t* table, char* out, int n) {
  int i = 0;
  for (; i + 8 <= n; i += 8) {
    uint64_t low, high;
    __builtin_memcpy(&low, index + i, 8);
    __builtin_memcpy(&high, index + i + 4, 8);
    uint8_t codes[8] = {table[low & 0xFFFF],          table[(low >> 16) & 0xFFFF],  table[(low >> 32) & 0xFFFF],
                        table[low >> 48],             table[high & 0xFFFF],         table[(high >> 16) & 0xFFFF],
                        table[(high >> 32) & 0xFFFF], table[high >> 48]};
    __builtin_memcpy(out + i, codes, 8);
  }
  for (; i < n; ++i) out[i] = (char)table[index[i]];
}

uint32_t encode_table14(const void* src, const void* table, void* dst, int64_t n) {
  const char* in = static_cast<const char*>(src);
  char* out = static_cast<char*>(dst);
  Index14 step;
  uint16_t index[kBlock];
  for (int64_t at = 0; at < n; at += kBlock) {
    const int count = n - at < kBlock ? (int)(n - at) : kBlock;
    sweep<2>(in + 4 * at, index, count, step);
    look_up8(index, static_cast<const uint8_t*>(table), out + at, count);
  }
  return step.watch.seen();
}

void map16_to8(const void* src, const void* table, void* dst, int64_t n) {
  const char* in = static_cast<const char*>(src);
  char* out = static_cast<char*>(dst);
  uint16_t index[kBlock];
  for (int64_t at = 0; at < n; at += kBlock) {
    const int count = n - at < kBlock ? (int)(n - at) : kBlock;
    __builtin_memcpy(index, in + 2 * at, 2 * count);
    look_up8(index, static_cast<const uint8_t*>(table), out + at, count);
  }
}

void map16_to16(const void* src, const void* table, void* dst, int64_t n) {
  const char* in = static_cast<const char*>(src);
  char* out = static_cast<char*>(dst);
  const uint16_t* entries = static_cast<const uint16_t*>(table);
  for (int64_t i = 0; i < n; ++i) {
    uint16_t pattern;
    __builtin_memcpy(&pattern, in + 2 * i, 2);
    __builtin_memcpy(out + 2 * i, &entries[pattern], 2);
  }
}

// Writes a block of fp32 from the stack, past the cache where asked and aligned.
NC_INLINE void put_values(char* out, const char* values, int count, bool stream) {
  if (!stream) {
    __builtin_memcpy(out, values, 4 * (int64_t)count);
    return;
  }
  int i = 0;
  for (; i + kLanes <= count; i += kLanes) stream_line(out + 4 * i, load<U>(values + 4 * i));
  __builtin_memcpy(out + 4 * i, values + 4 * i, 4 * (count - i));
}

uint32_t round_table14(const void* src, const void* table, void* dst, int64_t n, bool stream) {
  const char* in = static_cast<const char*>(src);
  const uint32_t* entries = static_cast<const uint32_t*>(table);
  char* out = static_cast<char*>(dst);
  stream = stream && elements_to_line(dst) == 0;
  Index14 step;
  uint16_t index[kBlock];
  alignas(kBytes) char values[4 * kBlock];
  for (int64_t at = 0; at < n; at += kBlock) {
    const int count = n - at < kBlock ? (int)(n - at) : kBlock;
    sweep<2>(in + 4 * at, index, count, step);
    for (int i = 0; i < count; ++i) __builtin_memcpy(values + 4 * i, &entries[index[i]], 4);
    put_values(out + 4 * at, values, count, stream);
  }
  if (stream) stream_fence();
  return step.watch.seen();
}
