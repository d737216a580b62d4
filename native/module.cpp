// The Python module: arrays in, kernels of the best level the processor has, threads and the GIL.
//
// Python prepares flat, contiguous, native-endian arrays and checks sizes that a user can get wrong; the checks in the
// bindings only keep a mistake from touching memory it should not.

#include <nanobind/stl/string.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "bindings.h"

namespace narrowcast {

const Kernels* kernels = nullptr;
int64_t cache_bytes = 0;

namespace {

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

}  // namespace
}  // namespace narrowcast

using namespace narrowcast;

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
  bind_conversions(m);
  bind_rows(m);
  bind_requant(m);
  bind_blocks(m);
  bind_summary(m);
  bind_limits(m);
}
