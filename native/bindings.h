// The Python module's parts: array types, the kernels in use, and how work is spread over threads.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <atomic>
#include <cstring>

#include "kernels.h"
#include "pool.h"

namespace nb = nanobind;

namespace narrowcast {

extern const Kernels* kernels;  // of the level in use
extern int64_t cache_bytes;     // output bytes from which stores bypass the cache

void bind_conversions(nb::module_& m);
void bind_rows(nb::module_& m);
void bind_blocks(nb::module_& m);
void bind_requant(nb::module_& m);
void bind_summary(nb::module_& m);
void bind_limits(nb::module_& m);

template <class T>
using Array = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Floats = Array<const float>;
using Words = Array<const uint16_t>;
using Bytes = Array<const uint8_t>;

constexpr uint32_t kNanValue = 0x7FC00000u;

constexpr int64_t kReleaseGil = int64_t{1} << 16;  // elements

template <class A, class B>
int64_t same_size(const A& src, const B& dst) {
  if (src.size() != dst.size()) throw nb::value_error("source and destination differ in size");
  return static_cast<int64_t>(src.size());
}

template <class T>
void need(const Array<const T>& table, size_t size) {
  if (table.size() != size) throw nb::value_error("table of the wrong size");
}

// Calls work(begin, end) over the array, on threads when it is large; returns the union of what it reports.
template <class F>
uint32_t spread(int64_t n, int threads, F work) {
  struct Context {
    F* work;
    std::atomic<uint32_t> seen;
  } context{&work, {0}};
  const auto call = [](void* raw, int64_t begin, int64_t end) {
    auto* c = static_cast<Context*>(raw);
    const uint32_t seen = (*c->work)(begin, end);
    if (seen) c->seen.fetch_or(seen, std::memory_order_relaxed);
  };
  if (n < kReleaseGil) {
    if (n > 0) call(&context, 0, n);
  } else {
    nb::gil_scoped_release release;
    run_parallel(n, threads, call, &context);
  }
  return context.seen.load();
}

inline Rounding rounding(int mode) {
  if (mode < RN || mode > RO) throw nb::value_error("unknown rounding");
  return static_cast<Rounding>(mode);
}

inline HybridCompare comparison(int compare) {
  if (compare < GE || compare > GE_NONZERO) throw nb::value_error("unknown comparison");
  return static_cast<HybridCompare>(compare);
}

inline Float8 float8(int target, int last) {
  if (target < E4M3 || target > last) throw nb::value_error("unknown target");
  return static_cast<Float8>(target);
}

// Calls work(row, first, count) for the part of each row that lies in [begin, end) of a flat array of rows.
template <class F>
void by_rows(int64_t columns, int64_t begin, int64_t end, F work) {
  while (begin < end) {
    const int64_t row = begin / columns;
    const int64_t stop = (row + 1) * columns < end ? (row + 1) * columns : end;
    work(row, begin, stop - begin);
    begin = stop;
  }
}

}  // namespace narrowcast
