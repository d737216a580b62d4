// Requantization: accumulators and codes times their scales.
#include "bindings.h"

namespace narrowcast {
namespace {

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

}  // namespace

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

}  // namespace narrowcast
