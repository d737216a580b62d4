// The Python module: arrays in, kernels of the best level the processor has, threads and the GIL.
//
// Python prepares flat, contiguous, native-endian arrays and checks sizes that a user can get wrong; the checks here
// only keep a mistake from touching memory it should not.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "kernels.h"
#include "pool.h"

namespace nb = nanobind;
using namespace narrowcast;

namespace {

template <class T>
using Array = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Floats = Array<const float>;
using Words = Array<const uint16_t>;
using Bytes = Array<const uint8_t>;

#if defined(__x86_64__)
bool has_v3() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c") &&
         __builtin_cpu_supports("bmi2");
}
#endif

const Kernels& best_kernels() {
#if defined(__x86_64__)
  const char* forced = std::getenv("NARROWCAST_ISA");
  if (forced != nullptr && std::strcmp(forced, "v2") == 0) return kernels_v2;
  return has_v3() ? kernels_v3 : kernels_v2;
#else
  return kernels_aarch64;
#endif
}

const Kernels* kernels = nullptr;

// Output bytes from which stores bypass the cache: beyond the last level they win, inside it they lose. sysconf counts
// a whole package on some processors, so the kernel's own file comes first.
int64_t stream_from() {
  int64_t kib = 0;
  if (std::FILE* file = std::fopen("/sys/devices/system/cpu/cpu0/cache/index3/size", "r")) {
    long read = 0;
    char unit = 0;
    if (std::fscanf(file, "%ld%c", &read, &unit) == 2 && unit == 'K') kib = read;
    std::fclose(file);
  }
  return kib > 0 ? kib << 10 : int64_t{32} << 20;
}

int64_t cache_bytes = 0;

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

Rounding rounding(int mode) {
  if (mode < RN || mode > RO) throw nb::value_error("unknown rounding");
  return static_cast<Rounding>(mode);
}

HybridCompare comparison(int compare) {
  if (compare < GE || compare > GE_NONZERO) throw nb::value_error("unknown comparison");
  return static_cast<HybridCompare>(compare);
}

Float8 float8(int target, int last) {
  if (target < E4M3 || target > last) throw nb::value_error("unknown target");
  return static_cast<Float8>(target);
}

template <class T, class A>
void integer_codes(const Floats& src, A& dst, int mode, bool saturate, uint32_t positive_limit,
                   uint32_t negative_limit, uint32_t mask, int threads, uint32_t& seen) {
  const int64_t n = same_size(src, dst);
  const Rounding checked = rounding(mode);
  const IntegerTarget target{positive_limit, negative_limit, mask, static_cast<int>(sizeof(T))};
  seen = spread(n, threads, [&](int64_t b, int64_t e) {
    return kernels->encode_integer(src.data() + b, dst.data() + b, e - b, checked, saturate, &target);
  });
}

void bind_encoders(nb::module_& m) {
  m.def("encode_table14", [](Floats src, Bytes table, Array<uint8_t> dst, int threads) {
    const int64_t n = same_size(src, dst);
    need(table, 1 << 14);
    return spread(n, threads, [&](int64_t b, int64_t e) {
      return kernels->encode_table14(src.data() + b, table.data(), dst.data() + b, e - b);
    });
  });
  m.def("encode_float8", [](Floats src, Array<uint8_t> dst, int target, uint32_t over_code, uint32_t nan_code,
                            bool over_is_nan, int threads) {
    const int64_t n = same_size(src, dst);
    const Float8 checked = float8(target, HIF8);
    const Ends ends{over_code, over_is_nan ? kNanValue : 0, nan_code, 0};
    return spread(n, threads, [&](int64_t b, int64_t e) {
      return kernels->encode_float8(src.data() + b, dst.data() + b, e - b, checked, &ends);
    });
  });
  m.def("encode_hybrid", [](Floats src, Array<uint8_t> dst, int compare, uint32_t over_code, uint32_t nan_code,
                            int threads) {
    const int64_t n = same_size(src, dst);
    const HybridCompare checked = comparison(compare);
    const Ends ends{over_code, 0, nan_code, 0};
    return spread(n, threads, [&](int64_t b, int64_t e) {
      return kernels->encode_hybrid(src.data() + b, dst.data() + b, e - b, checked, &ends);
    });
  });
  m.def("encode_bf16", [](Floats src, Array<uint16_t> dst, int mode, uint32_t limit, uint32_t nan_code, int threads) {
    const int64_t n = same_size(src, dst);
    const Rounding checked = rounding(mode);
    return spread(n, threads, [&](int64_t b, int64_t e) {
      return kernels->encode_bf16(src.data() + b, dst.data() + b, e - b, checked, limit, nan_code);
    });
  });
  m.def("encode_fp16", [](Floats src, Array<uint16_t> dst, int mode, uint32_t limit, uint32_t nan_code, int threads) {
    const int64_t n = same_size(src, dst);
    const Rounding checked = rounding(mode);
    return spread(n, threads, [&](int64_t b, int64_t e) {
      return kernels->encode_fp16(src.data() + b, dst.data() + b, e - b, checked, limit, nan_code);
    });
  });
  m.def("encode_integer8", [](Floats src, Array<uint8_t> dst, int mode, bool saturate, uint32_t positive_limit,
                              uint32_t negative_limit, uint32_t mask, int threads) {
    uint32_t seen;
    integer_codes<uint8_t>(src, dst, mode, saturate, positive_limit, negative_limit, mask, threads, seen);
    return seen;
  });
  m.def("encode_integer16", [](Floats src, Array<uint16_t> dst, int mode, bool saturate, uint32_t positive_limit,
                               uint32_t negative_limit, uint32_t mask, int threads) {
    uint32_t seen;
    integer_codes<uint16_t>(src, dst, mode, saturate, positive_limit, negative_limit, mask, threads, seen);
    return seen;
  });
  m.def("encode_integer32", [](Floats src, Array<uint32_t> dst, int mode, bool saturate, uint32_t positive_limit,
                               uint32_t negative_limit, uint32_t mask, int threads) {
    uint32_t seen;
    integer_codes<uint32_t>(src, dst, mode, saturate, positive_limit, negative_limit, mask, threads, seen);
    return seen;
  });
  m.def("map16_to8", [](Words src, Bytes table, Array<uint8_t> dst, int threads) {
    const int64_t n = same_size(src, dst);
    need(table, 1 << 16);
    spread(n, threads, [&](int64_t b, int64_t e) {
      kernels->map16_to8(src.data() + b, table.data(), dst.data() + b, e - b);
      return 0u;
    });
  });
  m.def("map16_to16", [](Words src, Words table, Array<uint16_t> dst, int threads) {
    const int64_t n = same_size(src, dst);
    need(table, 1 << 16);
    spread(n, threads, [&](int64_t b, int64_t e) {
      kernels->map16_to16(src.data() + b, table.data(), dst.data() + b, e - b);
      return 0u;
    });
  });
}

void bind_decoders(nb::module_& m) {
  m.def("decode_table8", [](Bytes src, Floats table, Array<float> dst, int threads) {
    const int64_t n = same_size(src, dst);
    need(table, 256);
    const bool stream = 4 * n > cache_bytes;
    spread(n, threads, [&](int64_t b, int64_t e) {
      kernels->decode_table8(src.data() + b, table.data(), dst.data() + b, e - b, stream);
      return 0u;
    });
  });
  m.def("decode_fp16", [](Words src, Array<float> dst, int threads) {
    const int64_t n = same_size(src, dst);
    const bool stream = 4 * n > cache_bytes;
    spread(n, threads, [&](int64_t b, int64_t e) {
      kernels->decode_fp16(src.data() + b, dst.data() + b, e - b, stream);
      return 0u;
    });
  });
  m.def("decode_bf16", [](Words src, Array<float> dst, int threads) {
    const int64_t n = same_size(src, dst);
    const bool stream = 4 * n > cache_bytes;
    spread(n, threads, [&](int64_t b, int64_t e) {
      kernels->decode_bf16(src.data() + b, dst.data() + b, e - b, stream);
      return 0u;
    });
  });
}

void bind_rounders(nb::module_& m) {
  m.def("round_float8", [](Floats src, Array<float> dst, int target, uint32_t over, uint32_t nan, int threads) {
    const int64_t n = same_size(src, dst);
    const Float8 checked = float8(target, E2M1);
    const Ends ends{0, over, 0, nan};
    const bool stream = 4 * n > cache_bytes;
    return spread(n, threads, [&](int64_t b, int64_t e) {
      return kernels->round_float8(src.data() + b, dst.data() + b, e - b, checked, &ends, stream);
    });
  });
  m.def("round_table14", [](Floats src, Floats table, Array<float> dst, int threads) {
    const int64_t n = same_size(src, dst);
    need(table, 1 << 14);
    const bool stream = 4 * n > cache_bytes;
    return spread(n, threads, [&](int64_t b, int64_t e) {
      return kernels->round_table14(src.data() + b, table.data(), dst.data() + b, e - b, stream);
    });
  });
  m.def("round_hybrid", [](Floats src, Array<float> dst, int compare, uint32_t over, uint32_t nan, int threads) {
    const int64_t n = same_size(src, dst);
    const HybridCompare checked = comparison(compare);
    const Ends ends{0, over, 0, nan};
    const bool stream = 4 * n > cache_bytes;
    return spread(n, threads, [&](int64_t b, int64_t e) {
      return kernels->round_hybrid(src.data() + b, dst.data() + b, e - b, checked, &ends, stream);
    });
  });
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

// Two threads may share a row.
void raise_to(uint32_t* largest, uint32_t part) {
  uint32_t current = __atomic_load_n(largest, __ATOMIC_RELAXED);
  while (part > current && !__atomic_compare_exchange_n(largest, &current, part, true, __ATOMIC_RELAXED,
                                                        __ATOMIC_RELAXED)) {
  }
}

void bind_rows(nb::module_& m) {
  m.def("quantize_rows", [](Floats src, Array<uint8_t> dst, Floats scale, Array<const int32_t> offset, int32_t low,
                            int32_t high, uint32_t mask, int threads) {
    const int64_t n = same_size(src, dst), rows = static_cast<int64_t>(scale.size());
    if (offset.size() != scale.size()) throw nb::value_error("one offset for each scale");
    if (rows == 0 ? n != 0 : n % rows != 0) throw nb::value_error("rows of unequal length");
    const int64_t columns = rows ? n / rows : 0;
    return spread(n, threads, [&](int64_t b, int64_t e) {
      uint32_t seen = 0;
      by_rows(columns, b, e, [&](int64_t row, int64_t at, int64_t count) {
        seen |= kernels->quantize_row(src.data() + at, dst.data() + at, count, scale.data()[row],
                                      offset.data()[row], low, high, mask);
      });
      return seen;
    });
  });
  // Codes as bytes, whatever their type.
  m.def("dequantize_rows", [](Bytes src, Array<float> dst, int code, Floats scale, Floats offset, int threads) {
    const int64_t n = static_cast<int64_t>(dst.size()), rows = static_cast<int64_t>(scale.size());
    const int64_t size = code == 2 ? 2 : 1;
    if (code < 0 || code > 2) throw nb::value_error("unknown code type");
    if (static_cast<int64_t>(src.size()) != size * n) throw nb::value_error("one code for each value");
    if (offset.size() != scale.size()) throw nb::value_error("one offset for each scale");
    if (rows == 0 ? n != 0 : n % rows != 0) throw nb::value_error("rows of unequal length");
    const int64_t columns = rows ? n / rows : 0;
    const bool stream = 4 * n > cache_bytes;
    spread(n, threads, [&](int64_t b, int64_t e) {
      by_rows(columns, b, e, [&](int64_t row, int64_t at, int64_t count) {
        kernels->dequantize_row(src.data() + size * at, dst.data() + at, count, code, scale.data()[row],
                                offset.data()[row], stream);
      });
      return 0u;
    });
  });
  m.def("multiply_rows", [](Floats src, Array<uint8_t> dst, Floats multiplier, Floats offset, int32_t low,
                            int32_t high, uint32_t mask, int threads) {
    const int64_t n = same_size(src, dst), rows = static_cast<int64_t>(multiplier.size());
    if (offset.size() != multiplier.size()) throw nb::value_error("one offset for each multiplier");
    if (rows == 0 ? n != 0 : n % rows != 0) throw nb::value_error("rows of unequal length");
    const int64_t columns = rows ? n / rows : 0;
    spread(n, threads, [&](int64_t b, int64_t e) {
      by_rows(columns, b, e, [&](int64_t row, int64_t at, int64_t count) {
        kernels->multiply_row(src.data() + at, dst.data() + at, count, multiplier.data()[row], offset.data()[row],
                              low, high, mask);
      });
      return 0u;
    });
  });
  m.def("absmax_rows", [](Floats src, Array<float> dst, int threads) {
    const int64_t n = static_cast<int64_t>(src.size()), rows = static_cast<int64_t>(dst.size());
    if (rows == 0 ? n != 0 : n % rows != 0) throw nb::value_error("rows of unequal length");
    const int64_t columns = rows ? n / rows : 0;
    if (rows) std::memset(dst.data(), 0, sizeof(float) * rows);
    // Positive floats order as their bits, and a row's largest starts from the bits of 0.
    return spread(n, threads, [&](int64_t b, int64_t e) {
      uint32_t seen = 0;
      by_rows(columns, b, e, [&](int64_t row, int64_t at, int64_t count) {
        uint32_t part;
        seen |= kernels->absmax(src.data() + at, count, &part);
        raise_to(reinterpret_cast<uint32_t*>(dst.data() + row), part);
      });
      return seen;
    });
  });
  // Grains have an even size, so a byte belongs to one thread.
  m.def("pack4", [](Bytes src, Array<uint8_t> dst, int threads) {
    const int64_t n = static_cast<int64_t>(src.size());
    if (static_cast<int64_t>(dst.size()) != (n + 1) / 2) throw nb::value_error("two codes a byte");
    spread(n, threads, [&](int64_t b, int64_t e) {
      kernels->pack4(src.data() + b, dst.data() + b / 2, e - b);
      return 0u;
    });
  });
  m.def("unpack4", [](Bytes src, Array<uint8_t> dst, int threads) {
    const int64_t n = static_cast<int64_t>(dst.size());
    if (static_cast<int64_t>(src.size()) != (n + 1) / 2) throw nb::value_error("two codes a byte");
    spread(n, threads, [&](int64_t b, int64_t e) {
      kernels->unpack4(src.data() + b / 2, dst.data() + b, e - b);
      return 0u;
    });
  });
}

void bind_blocks(nb::module_& m) {
  // Rows of `columns` elements, each in blocks of `block`; the last of a row may be short.
  m.def("mx_rows", [](Floats src, Array<uint8_t> codes, Array<uint8_t> scales, int64_t columns, int64_t block,
                      bool away, Array<const uint32_t> threshold, Bytes low, Bytes high, bool flush_byte0,
                      bool drop_negative, int nan_code, uint32_t limit_code, int element, int threads) {
    const int64_t n = static_cast<int64_t>(src.size());
    need(threshold, 256), need(low, 256), need(high, 256);
    if (columns < 1 || block < 32 || block % 32 || n % columns) throw nb::value_error("rows of unequal length");
    const int64_t per_row = (columns + block - 1) / block, blocks = n / columns * per_row;
    if (static_cast<int64_t>(scales.size()) != blocks) throw nb::value_error("one scale for each block");
    if (element < MX_E4M3 || element > MX_E1M2X2) throw nb::value_error("unknown element format");
    const int per_byte = element >= MX_E2M1X2 ? 2 : 1;
    const int64_t row_bytes = (columns + per_byte - 1) / per_byte;
    if (static_cast<int64_t>(codes.size()) != n / columns * row_bytes) throw nb::value_error("codes of another size");
    const MxRule rule{threshold.data(), low.data(), high.data(), flush_byte0, drop_negative,
                      static_cast<uint8_t>(nan_code), limit_code, static_cast<MxElement>(element)};
    // Grains count elements; a thread takes the whole blocks that begin in its share of them.
    return spread(n, threads, [&](int64_t b, int64_t e) {
      uint32_t seen = 0;
      by_rows(per_row, b * blocks / n, e * blocks / n, [&](int64_t row, int64_t first, int64_t count) {
        const int64_t at = (first - row * per_row) * block;
        const int64_t size = count * block < columns - at ? count * block : columns - at;
        seen |= kernels->mx_row(src.data() + row * columns + at, codes.data() + row * row_bytes + at / per_byte,
                                scales.data() + first, size, block, away, &rule);
      });
      return seen;
    });
  });
}

// Accumulators of a plain matrix, or of L0C's fractals: columns of 16 x 16 blocks, each `fractal_rows` x 16.
template <class T, class Finish>
uint32_t requantize(const Bytes& acc, Array<T>& dst, const RequantRule& rule, int64_t columns, int64_t fractal_rows,
                    int threads, Finish finish) {
  const int64_t n = static_cast<int64_t>(dst.size());
  if (columns <= 0 ? n != 0 : n % columns != 0) throw nb::value_error("rows of unequal length");
  if (n == 0) return 0;
  const int64_t rows = n / columns;
  if (fractal_rows && (columns % 16 != 0 || fractal_rows < rows)) throw nb::value_error("fractals of the wrong size");
  const int64_t held = fractal_rows ? columns * fractal_rows : n;
  if (static_cast<int64_t>(acc.size()) < 4 * held) throw nb::value_error("fewer accumulators than results");
  const char* in = reinterpret_cast<const char*>(acc.data());
  T* out = dst.data();
  // A work item's rule: its first column's parameters come first.
  const auto from = [&rule](int64_t column) {
    RequantRule part = rule;
    if (rule.per_column) {
      part.scale += column, part.offset += column;
      if (rule.alpha != nullptr) part.alpha += column;
    }
    return part;
  };
  return spread(n, threads, [&](int64_t b, int64_t e) {
    uint32_t seen = 0;
    if (fractal_rows == 0) {
      const auto piece = [&](int64_t at, int64_t rows_here, int64_t width) {
        seen |= finish(in + 4 * at, columns, out + at, columns, rows_here, width, from(at % columns));
      };
      const int64_t first = (b + columns - 1) / columns * columns, last = e / columns * columns;
      if (first > last) {
        piece(b, 1, e - b);
        return seen;
      }
      if (b < first) piece(b, 1, first - b);
      if (first < last) piece(first, (last - first) / columns, columns);
      if (last < e) piece(last, 1, e - last);
    } else {
      by_rows(16 * rows, b, e, [&](int64_t j, int64_t at, int64_t count) {
        const int64_t row = at / 16 - j * rows;
        const RequantRule part = from(16 * j);
        seen |= finish(in + 64 * (j * fractal_rows + row), int64_t{16}, out + row * columns + 16 * j, columns, count / 16,
               int64_t{16}, part);
      });
    }
    return seen;
  });
}

// Codes of floating-point targets: products in a buffer that stays in the first-level cache, then the encoder.
template <class T, class Encode>
auto through_products(Encode encode) {
  return [encode](const char* in, int64_t in_stride, T* out, int64_t out_stride, int64_t rows, int64_t columns,
                  const RequantRule& rule) {
    uint32_t seen = 0;
    constexpr int64_t kBlock = 1024;
    float products[kBlock];
    T codes[kBlock];
    if (columns == 16) {
      for (int64_t row = 0; row < rows; row += kBlock / 16) {
        const int64_t some = rows - row < kBlock / 16 ? rows - row : kBlock / 16;
        seen |= kernels->requant_rows(in + 4 * row * in_stride, in_stride, products, 16, some, 16, &rule, false);
        encode(products, codes, 16 * some);
        for (int64_t i = 0; i < some; ++i)
          std::memcpy(out + (row + i) * out_stride, codes + 16 * i, 16 * sizeof(T));
      }
      return seen;
    }
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < columns; column += kBlock) {
        const int64_t some = columns - column < kBlock ? columns - column : kBlock;
        RequantRule part = rule;
        if (rule.per_column) {
          part.scale += column;
          if (rule.alpha != nullptr) part.alpha += column;
        }
        seen |= kernels->requant_rows(in + 4 * (row * in_stride + column), some, products, some, 1, some, &part, false);
        encode(products, out + row * out_stride + column, some);
      }
    }
    return seen;
  };
}

RequantRule requant_rule(const Floats& scale, const Array<const int32_t>& offset, const Floats& alpha, bool relu,
                         bool integer, int64_t columns) {
  const bool per_column = scale.size() > 1;
  const size_t wanted = per_column ? static_cast<size_t>(columns) + kPadding : 1;
  if (scale.size() != wanted || offset.size() != wanted || (alpha.size() != 0 && alpha.size() != wanted))
    throw nb::value_error("one parameter, or one a column and padding");
  return {scale.data(), offset.data(), alpha.size() ? alpha.data() : nullptr, per_column, relu, integer,
          0,            0,             0,                                     0,          0};
}

void bind_requant(nb::module_& m) {
  m.def("requant_integer", [](Bytes acc, Array<uint8_t> dst, Floats scale, Array<const int32_t> offset, Floats alpha,
                              bool relu, bool integer, int64_t columns, int64_t fractal_rows, int32_t inner_low,
                              int32_t inner_high, int32_t low, int32_t high, uint32_t mask, int threads) {
    RequantRule rule = requant_rule(scale, offset, alpha, relu, integer, columns);
    rule.inner_low = inner_low, rule.inner_high = inner_high, rule.low = low, rule.high = high, rule.mask = mask;
    return requantize(acc, dst, rule, columns, fractal_rows, threads,
               [](const char* in, int64_t in_stride, uint8_t* out, int64_t out_stride, int64_t rows, int64_t width,
                  const RequantRule& part) {
                 return kernels->requant_rows(in, in_stride, out, out_stride, rows, width, &part, true);
               });
  });
  m.def("requant_half", [](Bytes acc, Array<uint16_t> dst, Floats scale, Array<const int32_t> offset, Floats alpha,
                           bool relu, bool integer, int64_t columns, int64_t fractal_rows, bool fp16, uint32_t limit,
                           uint32_t nan_code, int threads) {
    const RequantRule rule = requant_rule(scale, offset, alpha, relu, integer, columns);
    const auto encoder = fp16 ? kernels->encode_fp16 : kernels->encode_bf16;
    return requantize(acc, dst, rule, columns, fractal_rows, threads,
               through_products<uint16_t>([=](const float* products, uint16_t* codes, int64_t count) {
                 encoder(products, codes, count, RN, limit, nan_code);
               }));
  });
  m.def("requant_float8", [](Bytes acc, Array<uint8_t> dst, Floats scale, Array<const int32_t> offset, Floats alpha,
                             bool relu, bool integer, int64_t columns, int64_t fractal_rows, int target,
                             uint32_t over_code, uint32_t nan_code, bool over_is_nan, int compare, int threads) {
    const RequantRule rule = requant_rule(scale, offset, alpha, relu, integer, columns);
    const Ends ends{over_code, over_is_nan ? kNanValue : 0, nan_code, 0};
    if (compare >= 0) {
      const HybridCompare checked = comparison(compare);
      return requantize(acc, dst, rule, columns, fractal_rows, threads,
                 through_products<uint8_t>([&ends, checked](const float* products, uint8_t* codes, int64_t count) {
                   kernels->encode_hybrid(products, codes, count, checked, &ends);
                 }));
    }
    const Float8 checked = float8(target, HIF8);
    return requantize(acc, dst, rule, columns, fractal_rows, threads,
               through_products<uint8_t>([&ends, checked](const float* products, uint8_t* codes, int64_t count) {
                 kernels->encode_float8(products, codes, count, checked, &ends);
               }));
  });
}

void bind_limits(nb::module_& m) {
  m.def("limit_4to1", [](Floats src, Array<uint8_t> dst, int threads) {
    spread(same_size(src, dst), threads, [&](int64_t b, int64_t e) {
      kernels->limit_4to1(src.data() + b, dst.data() + b, e - b);
      return 0u;
    });
  });
  m.def("limit_4to2", [](Floats src, Array<uint16_t> dst, int threads) {
    spread(same_size(src, dst), threads, [&](int64_t b, int64_t e) {
      kernels->limit_4to2(src.data() + b, dst.data() + b, e - b);
      return 0u;
    });
  });
  m.def("limit_1to4", [](Bytes src, Array<float> dst, int threads) {
    spread(same_size(src, dst), threads, [&](int64_t b, int64_t e) {
      kernels->limit_1to4(src.data() + b, dst.data() + b, e - b);
      return 0u;
    });
  });
  m.def("limit_2to4", [](Words src, Array<float> dst, int threads) {
    spread(same_size(src, dst), threads, [&](int64_t b, int64_t e) {
      kernels->limit_2to4(src.data() + b, dst.data() + b, e - b);
      return 0u;
    });
  });
  m.def("limit_4to4", [](Floats src, Array<float> dst, int threads) {
    spread(same_size(src, dst), threads, [&](int64_t b, int64_t e) {
      kernels->limit_4to4(src.data() + b, dst.data() + b, e - b);
      return 0u;
    });
  });
  m.def("limit_2to1", [](Bytes src, Array<uint8_t> dst, int threads) {
    if (src.size() != 2 * dst.size()) throw nb::value_error("two bytes become one");
    spread(static_cast<int64_t>(dst.size()), threads, [&](int64_t b, int64_t e) {
      kernels->limit_2to1(src.data() + 2 * b, dst.data() + b, e - b);
      return 0u;
    });
  });
  m.def("limit_1to2", [](Bytes src, Array<uint8_t> dst, int threads) {
    if (2 * src.size() != dst.size()) throw nb::value_error("one byte becomes two");
    spread(static_cast<int64_t>(src.size()), threads, [&](int64_t b, int64_t e) {
      kernels->limit_1to2(src.data() + b, dst.data() + 2 * b, e - b);
      return 0u;
    });
  });
  m.def("limit_read", [](Floats src, int threads) {
    return spread(static_cast<int64_t>(src.size()), threads, [&](int64_t b, int64_t e) {
      return kernels->limit_read(src.data() + b, e - b);
    });
  });
}

}  // namespace

NB_MODULE(_native, m) {
  kernels = &best_kernels();
  cache_bytes = stream_from();
  m.def("level", [] { return std::string(kernels->level); });
  m.def("nearest_even", [] { return kernels->nearest_even(); });
  m.def("cache_bytes", [] { return cache_bytes; });
  m.attr("SEEN_NAN") = static_cast<int>(SEEN_NAN);
  m.attr("SEEN_UNDECIDED") = static_cast<int>(SEEN_UNDECIDED);
  m.attr("SEEN_SUBNORMAL") = static_cast<int>(SEEN_SUBNORMAL);
  m.attr("SEEN_INF") = static_cast<int>(SEEN_INF);
  bind_encoders(m);
  bind_decoders(m);
  bind_rounders(m);
  bind_rows(m);
  bind_requant(m);
  bind_blocks(m);
  bind_limits(m);
}
