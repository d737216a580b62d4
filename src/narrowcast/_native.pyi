"""The compiled kernels. Arrays are flat, contiguous and native; a function that returns an int reports ``SEEN_*``."""

import numpy as np
import numpy.typing as npt

_Floats = npt.NDArray[np.float32]
_Codes8 = npt.NDArray[np.uint8]
_Codes16 = npt.NDArray[np.uint16]

SEEN_NAN: int
SEEN_INF: int
SEEN_UNDECIDED: int
SEEN_SUBNORMAL: int

def level() -> str: ...
def nearest_even() -> bool: ...
def cache_bytes() -> int: ...
def encode_table14(src: _Floats, table: _Codes8, dst: _Codes8, threads: int, /) -> int: ...
def encode_float8(
    src: _Floats, dst: _Codes8, target: int, over_code: int, nan_code: int, over_is_nan: bool, threads: int, /
) -> int: ...
def encode_hybrid(src: _Floats, dst: _Codes8, compare: int, over_code: int, nan_code: int, threads: int, /) -> int: ...
def encode_bf16(src: _Floats, dst: _Codes16, mode: int, over_code: int, nan_code: int, threads: int, /) -> int: ...
def encode_fp16(src: _Floats, dst: _Codes16, mode: int, over_code: int, nan_code: int, threads: int, /) -> int: ...
def encode_integer8(
    src: _Floats,
    dst: _Codes8,
    mode: int,
    saturate: bool,
    positive_limit: int,
    negative_limit: int,
    mask: int,
    threads: int,
    /,
) -> int: ...
def encode_integer16(
    src: _Floats,
    dst: _Codes16,
    mode: int,
    saturate: bool,
    positive_limit: int,
    negative_limit: int,
    mask: int,
    threads: int,
    /,
) -> int: ...
def encode_integer32(
    src: _Floats,
    dst: npt.NDArray[np.uint32],
    mode: int,
    saturate: bool,
    positive_limit: int,
    negative_limit: int,
    mask: int,
    threads: int,
    /,
) -> int: ...
def map16_to8(src: _Codes16, table: _Codes8, dst: _Codes8, threads: int, /) -> None: ...
def map16_to16(src: _Codes16, table: _Codes16, dst: _Codes16, threads: int, /) -> None: ...
def decode_table8(src: _Codes8, table: _Floats, dst: _Floats, threads: int, /) -> None: ...
def decode_fp16(src: _Codes16, dst: _Floats, threads: int, /) -> None: ...
def decode_bf16(src: _Codes16, dst: _Floats, threads: int, /) -> None: ...
def round_float8(src: _Floats, dst: _Floats, target: int, over: int, nan: int, threads: int, /) -> int: ...
def round_table14(src: _Floats, table: _Floats, dst: _Floats, threads: int, /) -> int: ...
def round_hybrid(src: _Floats, dst: _Floats, compare: int, over: int, nan: int, threads: int, /) -> int: ...
def quantize_rows(
    src: _Floats,
    dst: _Codes8,
    scale: _Floats,
    offset: npt.NDArray[np.int32],
    low: int,
    high: int,
    mask: int,
    threads: int,
    /,
) -> int: ...
def mx_rows(
    src: _Floats,
    codes: _Codes8,
    scales: _Codes8,
    columns: int,
    block: int,
    away: bool,
    threshold: npt.NDArray[np.uint32],
    low: _Codes8,
    high: _Codes8,
    flush_byte0: bool,
    drop_negative: bool,
    nan_code: int,
    limit_code: int,
    element: int,
    threads: int,
    /,
) -> int: ...
def dequantize_rows(
    src: _Codes8, dst: _Floats, code: int, scale: _Floats, offset: _Floats, threads: int, /
) -> None: ...
def multiply_rows(
    src: _Floats,
    dst: _Codes8,
    multiplier: _Floats,
    offset: _Floats,
    low: int,
    high: int,
    mask: int,
    threads: int,
    /,
) -> None: ...
def absmax_rows(src: _Floats, dst: _Floats, threads: int, /) -> int: ...
def summarize(
    src: _Floats,
    reals: npt.NDArray[np.float64],
    counts: npt.NDArray[np.int64],
    exponents: npt.NDArray[np.int64],
    threads: int,
    /,
) -> None: ...
def pack4(src: _Codes8, dst: _Codes8, threads: int, /) -> None: ...
def unpack4(src: _Codes8, dst: _Codes8, threads: int, /) -> None: ...
def limit_4to1(src: _Floats, dst: _Codes8, threads: int, /) -> None: ...
def limit_4to2(src: _Floats, dst: _Codes16, threads: int, /) -> None: ...
def limit_1to4(src: _Codes8, dst: _Floats, threads: int, /) -> None: ...
def limit_2to4(src: _Codes16, dst: _Floats, threads: int, /) -> None: ...
def limit_4to4(src: _Floats, dst: _Floats, threads: int, /) -> None: ...
def limit_2to1(src: _Codes8, dst: _Codes8, threads: int, /) -> None: ...
def limit_1to2(src: _Codes8, dst: _Codes8, threads: int, /) -> None: ...
def limit_read(src: _Floats, threads: int, /) -> int: ...
def requant_integer(
    acc: _Codes8,
    dst: _Codes8,
    scale: _Floats,
    offset: npt.NDArray[np.int32],
    alpha: _Floats,
    relu: bool,
    integer: bool,
    columns: int,
    fractal_rows: int,
    inner_low: int,
    inner_high: int,
    low: int,
    high: int,
    mask: int,
    threads: int,
    /,
) -> int: ...
def requant_half(
    acc: _Codes8,
    dst: _Codes16,
    scale: _Floats,
    offset: npt.NDArray[np.int32],
    alpha: _Floats,
    relu: bool,
    integer: bool,
    columns: int,
    fractal_rows: int,
    fp16: bool,
    limit: int,
    nan_code: int,
    threads: int,
    /,
) -> int: ...
def requant_float8(
    acc: _Codes8,
    dst: _Codes8,
    scale: _Floats,
    offset: npt.NDArray[np.int32],
    alpha: _Floats,
    relu: bool,
    integer: bool,
    columns: int,
    fractal_rows: int,
    target: int,
    over_code: int,
    nan_code: int,
    over_is_nan: bool,
    compare: int,
    threads: int,
    /,
) -> int: ...
