// One pool of threads for the process, started by the first large array that asks for it.
#pragma once

#include <cstdint>

namespace narrowcast {

// Work on elements [begin, end) of an array.
using Work = void (*)(void* context, int64_t begin, int64_t end);

// Elements a thread takes at a time, and below which it is not worth waking one.
constexpr int64_t kGrain = int64_t{1} << 16;
constexpr int64_t kParallelFrom = int64_t{1} << 21;

// Runs `work` over [0, n) in grains, on at most `threads` threads, the caller among them. A second
// caller that arrives while the pool is busy works alone. Safe after fork: the child starts its own threads.
void run_parallel(int64_t n, int threads, Work work, void* context);

}  // namespace narrowcast
