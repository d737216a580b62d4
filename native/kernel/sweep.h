// Loops over an array of fp32: a step turns one vector of values into one vector of codes or values.
//
// A step may keep state (the NaN it has seen), so it is passed by reference. Tails run the same step on a padded
// buffer, so an element's result never depends on where it stands.

constexpr uint32_t kAbs = 0x7FFFFFFFu;
constexpr uint32_t kInf = 0x7F800000u;

// Largest magnitude seen, as bits: above infinity's, it was a NaN.
struct NanWatch {
  U largest = {};
  NC_ALWAYS void see(U magnitude) { largest = umax(largest, magnitude); }
  NC_ALWAYS uint32_t seen() const { return largest_lane(largest) > kInf ? (uint32_t)SEEN_NAN : 0u; }
};

template <int OutBytes>
constexpr int group() {
  return kLanes * (OutBytes == 1 ? 4 : OutBytes == 2 ? 2 : 1);
}

template <int OutBytes, class Step>
NC_INLINE void emit(const char* in, char* out, Step& step) {
  if constexpr (OutBytes == 1) {
    const U a = step(load<U>(in)), b = step(load<U>(in + kBytes));
    const U c = step(load<U>(in + 2 * kBytes)), d = step(load<U>(in + 3 * kBytes));
    store(out, narrow8(a, b, c, d));
  } else if constexpr (OutBytes == 2) {
    const U a = step(load<U>(in)), b = step(load<U>(in + kBytes));
    store(out, narrow16(a, b));
  } else {
    store(out, step(load<U>(in)));
  }
}

template <int OutBytes, class Step>
NC_INLINE void tail(const char* in, char* out, int64_t n, Step& step) {
  char values[4 * group<OutBytes>()] = {}, codes[OutBytes * group<OutBytes>()];
  __builtin_memcpy(values, in, 4 * n);
  emit<OutBytes>(values, codes, step);
  __builtin_memcpy(out, codes, OutBytes * n);
}

template <int OutBytes, class Step>
NC_INLINE void sweep(const void* src, void* dst, int64_t n, Step& step) {
  const char* in = static_cast<const char*>(src);
  char* out = static_cast<char*>(dst);
  constexpr int kGroup = group<OutBytes>();
  for (; n >= kGroup; n -= kGroup, in += 4 * kGroup, out += OutBytes * kGroup) emit<OutBytes>(in, out, step);
  if (n) tail<OutBytes>(in, out, n, step);
}

// Elements before the first aligned vector of the output, or -1 when no element is aligned.
NC_INLINE int64_t elements_to_line(const void* dst) {
  const uintptr_t misalignment = reinterpret_cast<uintptr_t>(dst) % kBytes;
  if (misalignment % 4) return -1;
  return misalignment ? (int64_t)(kBytes - misalignment) / 4 : 0;
}

NC_INLINE void stream_fence() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

// fp32 -> fp32, optionally past the cache.
template <class Step>
NC_INLINE void sweep_values(const void* src, void* dst, int64_t n, bool stream, Step& step) {
  const int64_t head = stream ? elements_to_line(dst) : -1;
  if (head < 0 || head > n) return sweep<4>(src, dst, n, step);
  const char* in = static_cast<const char*>(src);
  char* out = static_cast<char*>(dst);
  if (head) tail<4>(in, out, head, step);
  in += 4 * head, out += 4 * head, n -= head;
  for (; n >= kLanes; n -= kLanes, in += kBytes, out += kBytes) stream_line(out, step(load<U>(in)));
  stream_fence();
  if (n) tail<4>(in, out, n, step);
}
