// Reads (never writes) the thread's rounding mode.

bool nearest_even() {
#if defined(__x86_64__)
  return (_mm_getcsr() & 0x6000u) == 0;
#elif defined(__aarch64__)
  uint64_t control;
  __asm__ volatile("mrs %0, fpcr" : "=r"(control));
  return (control & (3u << 22)) == 0;
#else
  return true;
#endif
}
