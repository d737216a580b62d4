// x86-64-v2: SSE4.1, what every x86-64 since 2009 has.
#define NARROWCAST_LEVEL "v2"
#define NARROWCAST_TABLE kernels_v2
#include "../kernel/level.h"
