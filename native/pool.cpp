#include "pool.h"

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>

namespace narrowcast {
namespace {

class Pool {
 public:
  // Whether this call had the pool; else nothing was done.
  bool run(int64_t n, int helpers, Work work, void* context) {
    std::unique_lock<std::mutex> turn(turn_, std::try_to_lock);
    if (!turn.owns_lock()) return false;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      try {
        for (; started_ < helpers; ++started_) std::thread(&Pool::serve, this, started_).detach();
      } catch (const std::system_error&) {
        // Fewer threads than asked for: those that started share the work with the caller.
      }
      work_ = work, context_ = context, n_ = n, helpers_ = helpers < started_ ? helpers : started_;
      next_.store(0, std::memory_order_relaxed);
      active_ = helpers_;
      ++generation_;
    }
    wake_.notify_all();
    drain();
    std::unique_lock<std::mutex> lock(mutex_);
    done_.wait(lock, [this] { return active_ == 0; });
    return true;
  }

 private:
  void drain() {
    for (;;) {
      const int64_t begin = next_.fetch_add(kGrain, std::memory_order_relaxed);
      if (begin >= n_) return;
      work_(context_, begin, begin + kGrain < n_ ? begin + kGrain : n_);
    }
  }

  void serve(int index) {
    uint64_t served = 0;
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return generation_ != served; });
      served = generation_;
      if (index >= helpers_) continue;
      lock.unlock();
      drain();
      lock.lock();
      if (--active_ == 0) done_.notify_one();
    }
  }

  std::mutex turn_, mutex_;
  std::condition_variable wake_, done_;
  std::atomic<int64_t> next_{0};
  Work work_ = nullptr;
  void* context_ = nullptr;
  int64_t n_ = 0;
  int helpers_ = 0, started_ = 0, active_ = 0;
  uint64_t generation_ = 0;
};

// Never destroyed: its threads may outlive every static object. After a fork the child forgets the parent's pool,
// whose threads it does not have.
std::atomic<Pool*> pool{nullptr};

Pool& shared_pool() {
  static const int at_fork = pthread_atfork(nullptr, nullptr, [] { pool.store(nullptr); });
  (void)at_fork;
  Pool* current = pool.load();
  if (current != nullptr) return *current;
  Pool* fresh = new Pool;
  if (pool.compare_exchange_strong(current, fresh)) return *fresh;
  delete fresh;
  return *current;
}

}  // namespace

void run_parallel(int64_t n, int threads, Work work, void* context) {
  if (threads > 1 && n >= kParallelFrom && shared_pool().run(n, threads - 1, work, context)) return;
  if (n > 0) work(context, 0, n);
}

}  // namespace narrowcast
