// Kernels that take a scale for each row or block, and packing.
#include "bindings.h"

namespace narrowcast {
namespace {

// Two threads may share a row.
void raise_to(uint32_t* largest, uint32_t part) {
  uint32_t current = __atomic_load_n(largest, __ATOMIC_RELAXED);
  while (part > current && !__atomic_compare_exchange_n(largest, &current, part, true, __ATOMIC_RELAXED,
                                                        __ATOMIC_RELAXED)) {
  }
}

}  // namespace

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

}  // namespace narrowcast
