// One pass over an array for its sums, extremes and counts: fp32 in blocks that stay in the first-level cache.
//
// Sums are in double, where squares of fp32 cannot overflow. A block that holds NaN or infinity is counted again one
// by one, without them.

typedef double D __attribute__((vector_size(kBytes)));
typedef float HalfF __attribute__((vector_size(kBytes / 2)));

constexpr int64_t kSummaryBlock = 2048;  // elements
constexpr uint32_t kSmallestNormal = 0x00800000u;

NC_INLINE D to_double(const void* p) { return __builtin_convertvector(load<HalfF>(p), D); }

NC_INLINE double sum_lanes(D v) {
  double sum = 0;
  for (int i = 0; i < kLanes / 2; ++i) sum += v[i];
  return sum;
}

NC_INLINE int64_t sum_counts(I v) {
  int64_t sum = 0;
  for (int i = 0; i < kLanes; ++i) sum += v[i];
  return -sum;  // a comparison that holds is -1
}

NC_INLINE void summarize_one(const char* in, int64_t n, Summary* into) {
  for (; n > 0; --n, in += 4) {
    uint32_t bits;
    float value;
    __builtin_memcpy(&bits, in, 4);
    __builtin_memcpy(&value, in, 4);
    const uint32_t magnitude = bits & kAbs;
    if (magnitude > kInf) {
      ++into->nans;
    } else if (magnitude == kInf) {
      ++into->infinities;
    } else {
      const double wide = value;
      into->sum += wide;
      into->sum_squares += wide * wide;
      into->minimum = value < into->minimum ? value : into->minimum;
      into->maximum = value > into->maximum ? value : into->maximum;
      into->zeros += magnitude == 0;
      into->subnormals += magnitude != 0 && magnitude < kSmallestNormal;
    }
  }
}

NC_INLINE D add_square(D sum, D x) {
  // The square of an fp32 value is exact in double, so a fused step rounds like two.
#if defined(__AVX2__)
  return (D)_mm256_fmadd_pd((__m256d)x, (__m256d)x, (__m256d)sum);
#else
  return sum + x * x;
#endif
}

// Zeros and subnormals, in a pass of their own because most blocks have none.
NC_INLINE void count_small(const char* in, int64_t n, Summary* into) {
  I zeros = {}, small = {};
  for (; n > 0; n -= kLanes, in += kBytes) {
    const I magnitude = (I)(load<U>(in) & kAbs);
    zeros += magnitude == I{};
    small += magnitude < (I)all(kSmallestNormal);
  }
  const int64_t none = sum_counts(zeros);
  into->zeros += none;
  into->subnormals += sum_counts(small) - none;
}

// A whole number of vectors; false when the block holds NaN or infinity, and nothing was counted.
NC_INLINE bool summarize_block(const char* in, int64_t n, Summary* into) {
  U smallest = all(kInf);
  F least = all_f(into->minimum), most = all_f(into->maximum);
  D sum0 = {}, sum1 = {}, square0 = {}, square1 = {};
  const char* const start = in;
  for (int64_t left = n; left > 0; left -= kLanes, in += kBytes) {
    const U bits = load<U>(in);
    smallest = umin(smallest, bits & kAbs);
    least = fmin(least, (F)bits);
    most = fmax(most, (F)bits);
    const D a = to_double(in), b = to_double(in + kBytes / 2);
    sum0 += a, sum1 += b;
    square0 = add_square(square0, a), square1 = add_square(square1, b);
  }
  // One NaN or infinity among them makes the sum of squares NaN or infinite, and nothing else can.
  const double squares = sum_lanes(square0 + square1);
  if (!(squares - squares == 0)) return false;
  into->sum += sum_lanes(sum0 + sum1);
  into->sum_squares += squares;
  bool any_small = false;
  for (int i = 0; i < kLanes; ++i) {
    into->minimum = least[i] < into->minimum ? least[i] : into->minimum;
    into->maximum = most[i] > into->maximum ? most[i] : into->maximum;
    any_small |= smallest[i] < kSmallestNormal;
  }
  if (any_small) count_small(start, n, into);
  return true;
}

// Four tables, because equal neighbours would wait for one another in one.
NC_INLINE void count_exponents(const char* in, int64_t n, uint32_t (*tables)[256]) {
  for (; n >= 4; n -= 4, in += 16) {
    uint32_t bits[4];
    __builtin_memcpy(bits, in, 16);
    ++tables[0][(bits[0] >> 23) & 0xFF];
    ++tables[1][(bits[1] >> 23) & 0xFF];
    ++tables[2][(bits[2] >> 23) & 0xFF];
    ++tables[3][(bits[3] >> 23) & 0xFF];
  }
  for (; n > 0; --n, in += 4) {
    uint32_t bits;
    __builtin_memcpy(&bits, in, 4);
    ++tables[0][(bits >> 23) & 0xFF];
  }
}

void summarize(const void* src, int64_t n, Summary* into, int64_t* exponents) {
  const char* in = static_cast<const char*>(src);
  uint32_t tables[4][256];
  if (exponents) __builtin_memset(tables, 0, sizeof tables);
  int64_t counted = 0;
  while (n > 0) {
    const int64_t block = n < kSummaryBlock ? n : kSummaryBlock;
    const int64_t whole = block / kLanes * kLanes;
    if (whole && !summarize_block(in, whole, into)) summarize_one(in, whole, into);
    summarize_one(in + 4 * whole, block - whole, into);
    if (exponents) {
      count_exponents(in, block, tables);
      counted += block;
      if (counted > (int64_t{1} << 30) || n == block) {
        for (int i = 0; i < 256; ++i)
          exponents[i] += (int64_t)tables[0][i] + tables[1][i] + tables[2][i] + tables[3][i];
        __builtin_memset(tables, 0, sizeof tables);
        counted = 0;
      }
    }
    in += 4 * block, n -= block;
  }
}
