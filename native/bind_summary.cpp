// Sums, extremes and counts of an array.
#include <limits>
#include <mutex>
#include <vector>

#include "bindings.h"

namespace narrowcast {
namespace {

constexpr int64_t kPart = int64_t{1} << 16;  // elements; sums are added up part by part, whoever computed them

Summary empty_summary() {
  Summary s{};
  s.minimum = std::numeric_limits<float>::infinity();
  s.maximum = -std::numeric_limits<float>::infinity();
  return s;
}

}  // namespace

void bind_summary(nb::module_& m) {
  m.def("summarize", [](Floats src, Array<double> reals, Array<int64_t> counts, Array<int64_t> exponents, int threads) {
    if (reals.size() != 4 || counts.size() != 4) throw nb::value_error("4 reals and 4 counts");
    if (exponents.size() != 0 && exponents.size() != 256) throw nb::value_error("256 exponents, or none");
    const int64_t n = static_cast<int64_t>(src.size());
    std::vector<Summary> parts(static_cast<size_t>((n + kPart - 1) / kPart), empty_summary());
    int64_t* histogram = exponents.size() ? exponents.data() : nullptr;
    std::mutex mutex;
    spread(n, threads, [&](int64_t b, int64_t e) {
      int64_t local[256] = {};
      for (int64_t at = b; at < e; at += kPart) {
        const int64_t count = e - at < kPart ? e - at : kPart;
        kernels->summarize(src.data() + at, count, &parts[static_cast<size_t>(at / kPart)], histogram ? local : nullptr);
      }
      if (histogram) {
        const std::lock_guard<std::mutex> lock(mutex);
        for (int i = 0; i < 256; ++i) histogram[i] += local[i];
      }
      return 0u;
    });
    Summary all = empty_summary();
    for (const Summary& p : parts) {
      all.sum += p.sum, all.sum_squares += p.sum_squares;
      all.minimum = p.minimum < all.minimum ? p.minimum : all.minimum;
      all.maximum = p.maximum > all.maximum ? p.maximum : all.maximum;
      all.zeros += p.zeros, all.subnormals += p.subnormals;
      all.nans += p.nans, all.infinities += p.infinities;
    }
    double* r = reals.data();
    r[0] = all.sum, r[1] = all.sum_squares, r[2] = all.minimum, r[3] = all.maximum;
    int64_t* c = counts.data();
    c[0] = all.zeros, c[1] = all.subnormals, c[2] = all.nans, c[3] = all.infinities;
  });
}

}  // namespace narrowcast
