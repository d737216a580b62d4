// The least work with a given footprint, and plain stores: what a bench divides by.

struct KeepTop {
  int shift;
  NC_ALWAYS U operator()(U bits) { return bits >> shift; }
};

struct Flip {
  NC_ALWAYS U operator()(U bits) { return bits ^ 0x80000000u; }
};

void limit_4to1(const void* src, void* dst, int64_t n) {
  KeepTop step{24};
  sweep<1>(src, dst, n, step);
}

void limit_4to2(const void* src, void* dst, int64_t n) {
  KeepTop step{16};
  sweep<2>(src, dst, n, step);
}

void limit_4to4(const void* src, void* dst, int64_t n) {
  Flip step;
  sweep<4>(src, dst, n, step);
}

void limit_1to4(const void* src, void* dst, int64_t n) {
  const char* in = static_cast<const char*>(src);
  char* out = static_cast<char*>(dst);
  for (; n > kLanes; n -= kLanes, in += kLanes, out += kBytes) store(out, widen8(in) << 24);
  for (; n > 0; --n, ++in, out += 4) {
    const uint32_t value = (uint32_t)(uint8_t)*in << 24;
    __builtin_memcpy(out, &value, 4);
  }
}

void limit_2to4(const void* src, void* dst, int64_t n) {
  const char* in = static_cast<const char*>(src);
  char* out = static_cast<char*>(dst);
  for (; n > kLanes; n -= kLanes, in += 2 * kLanes, out += kBytes) store(out, widen16(in) << 16);
  for (; n > 0; --n, in += 2, out += 4) {
    uint16_t code;
    __builtin_memcpy(&code, in, 2);
    const uint32_t value = (uint32_t)code << 16;
    __builtin_memcpy(out, &value, 4);
  }
}

void limit_2to1(const void* src, void* dst, int64_t n) {
  const uint8_t* in = static_cast<const uint8_t*>(src);
  uint8_t* out = static_cast<uint8_t*>(dst);
  for (; n >= kBytes; n -= kBytes, in += 2 * kBytes, out += kBytes)
    store(out, join_bytes(load<H>(in) >> 8, load<H>(in + kBytes) >> 8));
  for (; n > 0; --n, in += 2) *out++ = in[1];
}

void limit_1to2(const void* src, void* dst, int64_t n) {
  const uint8_t* in = static_cast<const uint8_t*>(src);
  uint8_t* out = static_cast<uint8_t*>(dst);
  for (; n >= kBytes / 2; n -= kBytes / 2, in += kBytes / 2, out += kBytes) store(out, widen_bytes(in));
  for (; n > 0; --n, out += 2) out[0] = *in++, out[1] = 0;
}

uint32_t limit_read(const void* src, int64_t n) {
  const char* in = static_cast<const char*>(src);
  U a = {}, b = {}, c = {}, d = {};
  for (; n >= 4 * kLanes; n -= 4 * kLanes, in += 4 * kBytes) {
    a |= load<U>(in), b |= load<U>(in + kBytes), c |= load<U>(in + 2 * kBytes), d |= load<U>(in + 3 * kBytes);
  }
  return largest_lane(a | b | c | d);
}
