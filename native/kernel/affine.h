// One row of integer codes to fp32 and back, with the row's own parameters: what TDEQUANT and TQUANT compute.

enum class Code { S8, U8, S16 };

template <Code kCode>
NC_INLINE I widen_code(const char* in) {
  if constexpr (kCode == Code::U8) return (I)widen8(in);
  if constexpr (kCode == Code::S8) return (I)(widen8(in) << 24) >> 24;
  return (I)(widen16(in) << 16) >> 16;
}

// (code - offset) * scale: two roundings.
template <Code kCode>
struct Dequantize {
  static constexpr int kCodeBytes = kCode == Code::S16 ? 2 : 1;
  F scale, offset;

  NC_ALWAYS U operator()(const char* in) const { return (U)((to_float(widen_code<kCode>(in)) - offset) * scale); }

  NC_ALWAYS void tail(const char* in, char* out, int64_t n) const {
    char codes[kCodeBytes * kLanes] = {}, values[kBytes];
    __builtin_memcpy(codes, in, kCodeBytes * n);
    store(values, (*this)(codes));
    __builtin_memcpy(out, values, 4 * n);
  }
};

template <Code kCode>
NC_INLINE void dequantize(const void* src, void* dst, int64_t n, float scale, float offset, bool stream) {
  const Dequantize<kCode> step{all_f(scale), all_f(offset)};
  constexpr int kStep = Dequantize<kCode>::kCodeBytes * kLanes;
  const char* in = static_cast<const char*>(src);
  char* out = static_cast<char*>(dst);
  const int64_t head = stream ? elements_to_line(dst) : -1;
  if (head >= 0 && head <= n) {
    if (head) step.tail(in, out, head);
    in += Dequantize<kCode>::kCodeBytes * head, out += 4 * head, n -= head;
    for (; n >= kLanes; n -= kLanes, in += kStep, out += kBytes) stream_line(out, step(in));
    stream_fence();
  }
  for (; n >= 2 * kLanes; n -= 2 * kLanes, in += 2 * kStep, out += 2 * kBytes) {
    const U a = step(in), b = step(in + kStep);
    store(out, a), store(out + kBytes, b);
  }
  for (; n >= kLanes; n -= kLanes, in += kStep, out += kBytes) store(out, step(in));
  if (n) step.tail(in, out, n);
}

void dequantize_row(const void* src, void* dst, int64_t n, int code, float scale, float offset, bool stream) {
  switch (static_cast<Code>(code)) {
    case Code::S8: return dequantize<Code::S8>(src, dst, n, scale, offset, stream);
    case Code::U8: return dequantize<Code::U8>(src, dst, n, scale, offset, stream);
    case Code::S16: return dequantize<Code::S16>(src, dst, n, scale, offset, stream);
  }
}

// clamp(rint(x * multiplier + offset)): the product and the sum are rounded, NaN gives 0. Adding +0 where there is
// no offset changes no code.
struct Multiply {
  F multiplier, offset;
  I low, high;
  U mask;

  NC_ALWAYS U operator()(U bits) const {
    const F real = (F)bits * multiplier + offset;
    const U limited = (U)fmax(fmin(real, all_f(0x1p24f)), all_f(-0x1p24f)) & ~(U)(real != real);
    return (U)imin(imax(to_int(rint_even((F)limited)), low), high) & mask;
  }
};

void multiply_row(const void* src, void* dst, int64_t n, float multiplier, float offset, int32_t low, int32_t high,
                  uint32_t mask) {
  Multiply step{all_f(multiplier), all_f(offset), (I)all((uint32_t)low), (I)all((uint32_t)high), all(mask)};
  sweep<1>(src, dst, n, step);
}
