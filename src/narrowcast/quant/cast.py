"""Values to codes and back, one element at a time. Every narrowing in the package ends in a :class:`Cast`."""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from narrowcast import kernels
from narrowcast.catalog import rounding as _rounding_catalog
from narrowcast.catalog.formats import formats
from narrowcast.errors import FormatError, UnsupportedCastError, unknown_name
from narrowcast.numerics import COMPARES, OVERFLOW_RULES, source_name
from narrowcast.quant.arrays import Array, as_codes, as_values, check_out
from narrowcast.schema import Format, Magnitudes, Rounding

NAN_POLICIES = ("keep", "zero", "error")

RoundingLike = str | Rounding | None


@dataclass(frozen=True)
class Cast:
    """A conversion resolved once: target, rounding, overflow and NaN policy.

    Calling it encodes values: one rounding from the exact value of each element.

    Args:
        source: format name the values must have, None for whatever the array holds.
        target: format name or alias.
        rounding: mode, None for the target's default (``rna`` for hif8, ``rn`` elsewhere).
        saturate: overflow and infinity give the largest finite value; else infinity or NaN, where the format
            has one. Integers that do not saturate keep their low bits.
        nan: ``"keep"`` (an error for a format without NaN), ``"zero"`` or ``"error"``.
        hybrid_compare: reading of the hybrid rule, see the switch ``hif8_hybrid_compare``.
        overflow: reading of the overflow rule, see ``e4m3_overflow`` and ``directed_overflow``.

    Raises:
        UnknownNameError: an unknown format, mode or policy.

    Example:
        >>> Cast("fp32", "e4m3")(np.float32([17.0, 500.0]))
        array([ 88, 126], dtype=uint8)
    """

    source: str | None
    target: str
    rounding: RoundingLike = None
    saturate: bool = True
    nan: str = "keep"
    hybrid_compare: str = "ge"
    overflow: str = "after-rounding"

    def __post_init__(self) -> None:
        row = formats[self.target]
        mode = row.default_rounding if self.rounding is None else _rounding_catalog.rounding(self.rounding)
        for kind, value, legal in (
            ("NaN policy", self.nan, NAN_POLICIES),
            ("hybrid comparison", self.hybrid_compare, COMPARES),
            ("overflow rule", self.overflow, OVERFLOW_RULES),
        ):
            if value not in legal:
                raise unknown_name(kind, value, legal)
        if mode is Rounding.RH and row.name != "hif8":
            raise UnsupportedCastError(
                f"rounding rh into {row.name} does not exist (rh: hif8 only).",
                hint="Use rna or another mode.",
                source="asc-devkit:Reg Cast",
            )
        if self.source is not None:
            object.__setattr__(self, "source", formats[self.source].name)
        object.__setattr__(self, "target", row.name)
        object.__setattr__(self, "rounding", mode)

    @cached_property
    def format(self) -> Format:
        """The target's row."""
        return formats[self.target]

    @cached_property
    def mode(self) -> Rounding:
        """The resolved rounding mode."""
        assert isinstance(self.rounding, Rounding)
        return self.rounding

    @cached_property
    def _policy(self) -> dict[str, Any]:
        """What the kernels ask besides the format and the mode."""
        names = ("saturate", "nan", "hybrid_compare", "overflow")
        return {name: getattr(self, name) for name in names}

    def _values(self, values: npt.ArrayLike) -> Array:
        array = as_values(values)
        name = source_name(array.dtype)
        if self.source is not None and name != self.source:
            message = f"this cast takes {self.source} values; got {name}."
            raise FormatError(message, hint="Build a Cast for that source.")
        if self.mode is Rounding.RH and array.dtype.name not in ("float32", "float16"):
            return _for_hybrid(array)
        return array

    def __call__(self, values: npt.ArrayLike, out: Array | None = None) -> Array:
        """Return the codes of ``values``, same shape, ``format.code_dtype``."""
        array = self._values(values)
        check_out(out, array.shape, self.format.code_dtype)
        return kernels.encode(array, self.format, self.mode, out=out, **self._policy)

    def round_to(self, values: npt.ArrayLike, out: Array | None = None) -> Array:
        """Return the values of the codes of ``values`` as float32, in one pass."""
        if self.format.is_integer and self.format.bits > 16:
            raise FormatError(
                f"float32 cannot hold every {self.target} value.", hint=f'Use encode(..., "{self.target}") instead.'
            )
        array = self._values(values)
        check_out(out, array.shape, "float32")
        return kernels.round_to(array, self.format, self.mode, out=out, **self._policy)


def _for_hybrid(array: Array) -> Array:
    """fp64 values that are fp32 values may take the fp32 rule; nothing else has one."""
    if array.dtype.name == "float64":
        with np.errstate(over="ignore"):
            narrow = array.astype(np.float32)
        if np.array_equal(narrow.astype(np.float64), array, equal_nan=True):
            return narrow
    raise UnsupportedCastError(
        f"hybrid rounding (rh) is defined for fp32 and fp16 values; got {array.dtype.name}.",
        hint="Convert the values to float32 first: their own low bits are the threshold.",
        source="asc-devkit:Reg Cast",
    )


@lru_cache(maxsize=256)
def _cast(format: str, rounding: RoundingLike, saturate: bool, nan: str) -> Cast:
    """A cast resolved once: the checks cost more than converting a small array."""
    return Cast(None, format, rounding, saturate, nan)


def encode(
    values: npt.ArrayLike,
    format: str,
    rounding: RoundingLike = None,
    saturate: bool = True,
    nan: str = "keep",
    out: Array | None = None,
) -> Array:
    """Round values to a format and return their codes.

    Formula: ``code = index of round(value)``, one rounding from the exact value.

    Args:
        values: array of any shape and strides: float64, float32, float16, bfloat16 or integers.
        format: format name or alias, e.g. ``"e4m3"``.
        rounding: ``rn rna rd ru rz ro rh`` or a vendor spelling; None is the format's default.
        saturate: whether overflow and infinity give the largest finite value.
        nan: ``"keep"``, ``"zero"`` or ``"error"``.
        out: array for the result.

    Returns:
        Bit patterns, one unsigned integer per element (uint8, uint16, uint32 or uint64).

    Raises:
        UnknownNameError: unknown format, rounding or policy.
        FormatError: NaN where the format has none and no policy is named; values of no source dtype.
        UnsupportedCastError: hybrid rounding of something else than fp32 or fp16 to hif8.

    Source: the format's and the rounding mode's catalog rows.

    Example:
        >>> encode([17 + 2**-10, 464.0, 465.0, -1e-9], "e4m3", saturate=False)
        array([ 89, 126, 127, 128], dtype=uint8)
    """
    return _cast(format, rounding, saturate, nan)(values, out=out)


def round_to(
    values: npt.ArrayLike,
    format: str,
    rounding: RoundingLike = None,
    saturate: bool = True,
    nan: str = "keep",
    out: Array | None = None,
) -> Array:
    """Round values to a format and return them as float32 ("fake quantization"), in one pass.

    Formula: ``decode(encode(value))``.

    Args:
        values: as for :func:`encode`.
        format: a format whose values float32 holds (all but s32, u32 and s64).
        rounding: as for :func:`encode`.
        saturate: as for :func:`encode`.
        nan: as for :func:`encode`.
        out: float32 array for the result.

    Returns:
        float32 array of the same shape.

    Raises:
        FormatError: as for :func:`encode`, or a format float32 cannot hold.

    Source: the format's and the rounding mode's catalog rows.

    Example:
        >>> round_to([17.0, 19.0], "e4m3")
        array([16., 20.], dtype=float32)
    """
    return _cast(format, rounding, saturate, nan).round_to(values, out=out)


def decode(codes: npt.ArrayLike, format: str, out: Array | None = None) -> Array:
    """Return the values of codes.

    Args:
        codes: bit patterns, one per element, or an ml_dtypes array of that format.
        format: format name or alias.
        out: array for the result.

    Returns:
        float32 array of the same shape (int32, uint32 or int64 for those formats).

    Raises:
        FormatError: a code the format does not have.

    Source: the format's catalog row.

    Example:
        >>> decode([0x08, 0x18, 0x6F], "hif8")
        array([1. , 0.5, inf], dtype=float32)
    """
    row = formats[format]
    array = as_codes(codes, row)
    wide = row.is_integer and row.bits > 16
    check_out(out, array.shape, f"{'int' if row.signed else 'uint'}{row.bits}" if wide else "float32")
    return kernels.decode(array, row, out=out)


def flush_subnormals(values: npt.ArrayLike, format: str) -> Array:
    """Replace values below a format's smallest normal magnitude by zero of the same sign.

    Args:
        values: array of any shape; integers are never subnormal.
        format: the floating-point format whose normal range decides.

    Returns:
        Array of the same dtype and shape.

    Raises:
        FormatError: an integer format, which has no subnormals.

    Source: seed:5.4, the fix for subnormal input.

    Example:
        >>> flush_subnormals(np.float32([1e-39, -1e-39, 1.0]), "fp32")
        array([ 0., -0.,  1.], dtype=float32)
    """
    row = formats[format]
    if not isinstance(row, Magnitudes):
        raise FormatError(f"{row.name} is an integer format; it has no subnormals.")
    array = as_values(values)
    held = source_name(array.dtype)
    if held is not None and formats[held].is_integer:
        return array.copy()
    small = np.abs(array) < np.asarray(row.min_normal, dtype=array.dtype if array.dtype.kind == "f" else np.float32)
    flushed: Array = np.where(small, np.copysign(np.zeros((), dtype=array.dtype), array), array)
    return flushed
