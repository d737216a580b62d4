// One level: included once by each unit of levels/, which names the level first.
//
// Everything is in an anonymous namespace, and nothing comes from the C++ library: a weak symbol shared by two levels
// would put one level's instructions into the other's path. tests/test_kernels_binary.py reads the object files.

#include "../kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace narrowcast {
namespace {

#include "vectors.h"
#include "sweep.h"
#include "environment.h"
#include "bytes.h"
#include "minifloat.h"
#include "half.h"
#include "table.h"
#include "decode.h"
#include "float8.h"
#include "hif8.h"
#include "integer.h"
#include "affine.h"
#include "mx.h"
#include "requant.h"
#include "summary.h"
#include "limit.h"

}  // namespace

extern const Kernels NARROWCAST_TABLE;
const Kernels NARROWCAST_TABLE = {
    NARROWCAST_LEVEL, nearest_even, encode_table14, encode_float8, encode_hybrid, encode_bf16, encode_fp16,
    encode_integer, map16_to8, map16_to16, decode_table8, decode_fp16, decode_bf16, round_float8, round_table14,
    round_hybrid, quantize_row, dequantize_row, multiply_row, absmax, mx_row, requant_rows, summarize, pack4, unpack4,
    limit_4to1, limit_4to2, limit_1to4, limit_2to4,
    limit_4to4, limit_2to1, limit_1to2, limit_read,
};

}  // namespace narrowcast
