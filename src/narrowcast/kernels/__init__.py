"""The fast path of every conversion: dispatch over the compiled module and over tables built from ``numerics``."""

import numpy as np

from narrowcast import numerics


def level():
    return "numpy"


def info():
    return {"level": level()}


def _put(result, shape, out):
    result = result.reshape(shape)
    if out is None:
        return result
    out[...] = result
    return out


def encode(values, target, rounding, *, saturate, nan, hybrid_compare="ge", overflow="after-rounding", out=None):
    flat = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("=")).reshape(-1)
    codes = numerics.encode(
        flat, target, rounding, saturate=saturate, nan=nan, hybrid_compare=hybrid_compare, overflow=overflow
    )
    return _put(codes, values.shape, out)


def decode(codes, fmt, out=None):
    flat = np.ascontiguousarray(codes, dtype=codes.dtype.newbyteorder("=")).reshape(-1)
    return _put(numerics.decode(flat, fmt), codes.shape, out)


def round_to(values, target, rounding, *, out=None, **policy):
    return decode(encode(values, target, rounding, **policy), target, out=out)


def pack(codes):
    low, high = codes[..., 0::2], codes[..., 1::2]
    packed = low.astype(np.uint8)
    packed[..., : high.shape[-1]] |= (high << 4).astype(np.uint8)
    return packed


def unpack(packed, count):
    codes = np.stack([packed & 15, packed >> 4], axis=-1).reshape(*packed.shape[:-1], -1)
    return codes[..., :count].astype(np.uint8)


def quantize_rows(values, scale, target, offset=None):
    quotient = np.rint(values / scale[:, None])
    quotient = np.where(np.isnan(quotient), 0, np.clip(quotient, -(2.0**24), 2.0**24)).astype(np.int64)
    if offset is not None:
        quotient = quotient + np.asarray(offset, dtype=np.int64)[:, None]
    return (np.clip(quotient, target.min, target.max) & target.code_mask).astype(np.uint8)
