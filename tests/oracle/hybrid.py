"""The hybrid rounding of HiF8 (`rh`), as the vendor's Cast page writes it, on the bits of the source.

The source's own low bits are the threshold that the discarded bits are compared with; near one, where three bits of
fraction are kept, it is plain ties-away. Subnormal halves are normalised first, and their threshold bit is the
original last bit.
"""

import numpy as np

from tests.oracle.sources import Split

# exponent magnitude -> fraction bits kept
KEPT = {**dict.fromkeys(range(4), 3), **dict.fromkeys(range(4, 8), 2), **dict.fromkeys(range(8, 16), 1)}
KEPT_TABLE = np.array([KEPT.get(abs(e), 0) for e in range(-23, 16)], np.int64)


def passes(compare: str, fraction: np.ndarray, threshold: np.ndarray, inexact: np.ndarray) -> np.ndarray:
    if compare == "gt":
        return fraction > threshold
    up = fraction >= threshold
    return up & inexact if compare == "ge-nonzero" else up


def hybrid_codes(parts: Split, *, saturate: bool, compare: str) -> np.ndarray:
    """Return HiF8 codes of fp32 or fp16 values; NaN is left to the caller."""
    bits = parts.key.astype(np.int64)
    if parts.kind == "float32":
        width, bias, window = 23, 127, 14
        threshold = bits & 0x3FFF
    elif parts.kind == "float16":
        width, bias, window = 10, 15, 2
        threshold = 2 * (bits & 1) + 1
    else:
        raise AssertionError(f"no hybrid rounding from {parts.kind}")

    exponent = np.maximum(bits >> width, 1) - bias
    significand = np.where(bits >> width > 0, bits % 2**width + 2**width, bits % 2**width)
    for _ in range(width if parts.kind == "float16" else 0):  # normalise until the hidden bit appears
        below = (significand < 2**width) & (significand > 0)
        significand = np.where(below, 2 * significand, significand)
        exponent = np.where(below, exponent - 1, exponent)
    exponent = np.where(significand < 2**width, -99, exponent)  # zero, or a single far below the format
    fraction = significand % 2**width

    place = np.clip(exponent, -23, 15) + 23
    kept = KEPT_TABLE[place]
    discarded = width - kept  # how many bits are dropped
    dropped = fraction & ((1 << discarded) - 1)
    first_bits = dropped >> np.maximum(discarded - window, 0)
    away = dropped >> (discarded - 1) & 1 == 1
    up = np.where(kept == 3, away, passes(compare, first_bits, threshold, dropped != 0))

    # below the smallest value but within a factor two of it: the hidden one is the first discarded bit
    tiny = exponent == -23
    tiny_bits = (1 << (window - 1)) | (fraction >> (width - window + 1))
    up = np.where(tiny, passes(compare, tiny_bits, threshold, np.ones(bits.shape, bool)), up)

    # position of the truncated magnitude in the ascending list of values, then one step up where `up` says
    index = np.where(tiny, 0, POSITION[place] + (fraction >> discarded)) + up
    index = np.where(exponent < -23, 0, np.where(exponent > 15, len(ASCENDING) - 1, index))
    index = np.minimum(index, len(ASCENDING) - 1)
    codes = ASCENDING[index]
    codes = np.where((codes == 0x6F) & saturate, 0x6E, codes)
    return np.where(parts.negative & (codes != 0), codes | 0x80, codes).astype(np.int64)


def ascending() -> tuple[np.ndarray, np.ndarray]:
    """Return the magnitudes' codes in ascending order (infinity last) and where each exponent begins."""
    codes, begins = [0], [0]
    for exponent in range(-22, 16):
        begins.append(len(codes))
        if exponent < -15:
            codes.append(exponent + 23)
            continue
        size, sign = abs(exponent), int(exponent < 0)
        prefix = {
            0: 0x08,
            1: 0x10 | sign << 3,
            2: 0x20 | sign << 4 | (size & 1) << 3,
            3: 0x40 | sign << 4 | (size & 3) << 2,
            4: 0x60 | sign << 4 | (size & 7) << 1,
        }[size.bit_length()]
        codes += [prefix | m for m in range(2 ** KEPT[size])]
    return np.array(codes), np.array(begins)


ASCENDING, POSITION = ascending()
