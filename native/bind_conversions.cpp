// Encoders, decoders and value rounding, element by element.
#include "bindings.h"

namespace narrowcast {
namespace {

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

}  // namespace

static void bind_encoders(nb::module_& m) {
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

static void bind_decoders(nb::module_& m) {
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

static void bind_rounders(nb::module_& m) {
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

void bind_conversions(nb::module_& m) {
  bind_encoders(m);
  bind_decoders(m);
  bind_rounders(m);
}

}  // namespace narrowcast
