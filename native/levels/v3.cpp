// x86-64-v3: AVX2, FMA and F16C.
#define NARROWCAST_LEVEL "v3"
#define NARROWCAST_TABLE kernels_v3
#include "../kernel/level.h"
