// The aarch64 baseline: NEON.
#define NARROWCAST_LEVEL "aarch64"
#define NARROWCAST_TABLE kernels_aarch64
#include "../kernel/level.h"
