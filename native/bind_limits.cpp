// The limit kernels, for the bench.
#include "bindings.h"

namespace narrowcast {
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

}  // namespace narrowcast
