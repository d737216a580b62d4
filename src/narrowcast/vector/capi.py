"""The C-API conversion functions, under the names the seed gives them.

Each works on arrays of any size as the register function does on its lanes: elements not in the mask become
zero, and the chip, the modes and the existence of a ``_sat`` form are those of the vendor's headers.

Types with two elements per byte (names with ``x2``) are uint8 arrays of packed pairs, even element in the low
nibble: their last axis is half as long as that of the unpacked side.
"""

import inspect
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from narrowcast.catalog.capi import CApiRow, functions
from narrowcast.catalog.formats import formats
from narrowcast.errors import ShapeError, UnsupportedCastError
from narrowcast.operation import Control, Semantics, execute
from narrowcast.quant import unpack
from narrowcast.schema import Rounding
from narrowcast.vector.arrays import Array, dtype_of
from narrowcast.vector.masks import element_mask
from narrowcast.vector.operation import VectorCast, refuse_now
from narrowcast.vector.rules import is_packed


class RoundingFunction(Protocol):
    """A conversion with a rounding mode."""

    __name__: str

    def __call__(
        self,
        src: npt.ArrayLike,
        mask: npt.ArrayLike | None = None,
        mode: str | Rounding | None = None,
        *,
        saturate: bool = False,
        control: Control | None = None,
        semantics: Semantics | None = None,
        out: Array | None = None,
    ) -> Array:
        """Convert ``src``."""


class ExactFunction(Protocol):
    """A conversion that represents every source value."""

    __name__: str

    def __call__(
        self,
        src: npt.ArrayLike,
        mask: npt.ArrayLike | None = None,
        *,
        control: Control | None = None,
        semantics: Semantics | None = None,
        out: Array | None = None,
    ) -> Array:
        """Convert ``src``."""


def _convert(
    row: CApiRow,
    src: npt.ArrayLike,
    mask: npt.ArrayLike | None,
    mode: str | None,
    saturate: bool,
    control: Control | None,
    semantics: Semantics | None,
    out: Array | None,
) -> Array:
    semantics = semantics or Semantics()
    op = VectorCast(
        source=row.source,
        target=row.target,
        mode=mode,
        interface="c-api",
        saturate=saturate,
        packed=is_packed(row.target),
    )
    _require(row, op, semantics)
    array = np.asarray(src)
    if is_packed(row.source):
        array, mask = _unpacked(row, array, mask)
    result: Array = execute(op, {"src": array, "mask": mask}, semantics, control, out)
    return result


def _require(row: CApiRow, op: VectorCast, semantics: Semantics) -> None:
    chip = semantics.chip
    if chip not in row.chips:
        raise UnsupportedCastError(
            f"{row.name} does not exist on chip {chip} (chips: {', '.join(row.chips)}).",
            hint="Choose Semantics(chip=...), or narrowcast.vector.cast where that chip has the pair.",
            source=row.reference,
        )
    if op.saturate and not (row.has_sat and chip == "3510"):
        raise UnsupportedCastError(
            f"{row.name} has no _sat form on chip {chip}.",
            hint="Omit saturate; the control bits decide.",
            source=row.reference,
        )
    refuse_now(op, semantics)


def _unpacked(row: CApiRow, array: Array, mask: npt.ArrayLike | None) -> tuple[Array, npt.ArrayLike | None]:
    """Open packed pairs; a mask has one boolean, or one bit, per byte."""
    if array.dtype != np.uint8 or array.ndim == 0:
        raise ShapeError(
            f"{row.name} takes packed pairs, a uint8 array; got {array.dtype}, shape {array.shape}.",
            hint="Pack the codes with narrowcast.pack.",
        )
    if mask is not None:
        mask = np.repeat(element_mask(mask, array.shape, formats["u8"]), 2, axis=-1)
    return unpack(array, row.source), mask


def _rounding(name: str) -> RoundingFunction:
    row = functions[name]
    default = row.modes[0]

    def function(
        src: npt.ArrayLike,
        mask: npt.ArrayLike | None = None,
        mode: str | Rounding | None = default,
        *,
        saturate: bool = False,
        control: Control | None = None,
        semantics: Semantics | None = None,
        out: Array | None = None,
    ) -> Array:
        short = mode.value if isinstance(mode, Rounding) else mode
        return _convert(row, src, mask, short or default, saturate, control, semantics, out)

    _describe(function, row)
    return function


def _exact(name: str) -> ExactFunction:
    row = functions[name]

    def function(
        src: npt.ArrayLike,
        mask: npt.ArrayLike | None = None,
        *,
        control: Control | None = None,
        semantics: Semantics | None = None,
        out: Array | None = None,
    ) -> Array:
        return _convert(row, src, mask, "none", False, control, semantics, out)

    _describe(function, row)
    return function


def _describe(function: Any, row: CApiRow) -> None:
    """Give a function its name, signature and documentation from its row."""
    function.__name__ = function.__qualname__ = row.name
    function.__module__ = __name__
    function.__signature__ = inspect.signature(function)
    function.__doc__ = _documentation(row)


def _documentation(row: CApiRow) -> str:
    takes, gives = (_array_type(name) for name in (row.source, row.target))
    modes = f"round_{{{' '.join(row.modes)}}}(src[i])" if row.modes else "src[i], exactly"
    lines = [
        f"Convert {row.source} to {row.target}, as ``{row.vendor_name}`` does.",
        "",
        f"Formula: ``dst[i] = {modes}``; elements not in ``mask`` become zero.",
        "",
        "Args:",
        f"    src: {takes}.",
        f"    mask: a boolean per {'byte' if is_packed(row.source) else 'element'} of ``src``, or up to four 64-bit "
        "words, one bit per byte of a",
        "        256-byte register, for every register.",
    ]
    if row.modes:
        lines.append(f"    mode: one of {', '.join(row.modes)}; default {row.modes[0]}.")
        if row.has_sat:
            lines += [
                "    saturate: the ``_sat`` form (chip 3510). It counts only where CTRL[60] is 0: at reset the",
                "        control bits decide, and they saturate.",
            ]
        else:
            lines.append("    saturate: must be False, there is no ``_sat`` form.")
    lines += [
        "    control: control bits, by default at reset.",
        "    semantics: whom to believe and the chip.",
        "    out: array for the result.",
        "",
        "Returns:",
        f"    {gives}.",
        "",
        "Raises:",
        f"    UnsupportedCastError: a chip other than {', '.join(row.chips)}, or a mode not listed.",
        "",
        f"Source: {row.reference}.",
        "",
        "Example:",
        f"    >>> {row.name}({_sample(row)}).dtype",
        f"    {dtype_of(formats[row.target])!r}" if not is_packed(row.target) else "    dtype('uint8')",
    ]
    return "\n    ".join(lines).replace("\n    \n", "\n\n") + "\n    "


def _array_type(name: str) -> str:
    if is_packed(name):
        return f"uint8 array of packed {name} pairs, even element in the low nibble; last axis halved"
    fmt = formats[name]
    return f"{dtype_of(fmt)} array{' of codes' if fmt.ml_dtype is None else ''}, any shape"


def _sample(row: CApiRow) -> str:
    name = "uint8" if is_packed(row.source) else str(dtype_of(formats[row.source]))
    if name.startswith(("bfloat", "float8")):
        return f"np.zeros(2, ml_dtypes.{name})"
    return f"np.zeros(2, np.{name})"


Float2Half = _rounding("Float2Half")
Float2Bfloat16 = _rounding("Float2Bfloat16")
Float2Int32 = _rounding("Float2Int32")
Float2E4m3 = _rounding("Float2E4m3")
Float2E5m2 = _rounding("Float2E5m2")
Float2Hif8 = _rounding("Float2Hif8")
Half2Int8 = _rounding("Half2Int8")
Half2Int4x2 = _rounding("Half2Int4x2")
Half2Hif8 = _rounding("Half2Hif8")
Bfloat162E2m1x2 = _rounding("Bfloat162E2m1x2")
Bfloat162E1m2x2 = _rounding("Bfloat162E1m2x2")
Half2Float = _exact("Half2Float")
E4m32Float = _exact("E4m32Float")
E5m22Float = _exact("E5m22Float")
Hif82Float = _exact("Hif82Float")
Bfloat162Float = _exact("Bfloat162Float")
Int322Float = _rounding("Int322Float")
Int82Half = _exact("Int82Half")
Int4x22Half = _exact("Int4x22Half")
Hif82Half = _exact("Hif82Half")
E2m1x22Bfloat16 = _exact("E2m1x22Bfloat16")
E1m2x22Bfloat16 = _exact("E1m2x22Bfloat16")
Half2Bfloat16 = _rounding("Half2Bfloat16")
Bfloat162Half = _rounding("Bfloat162Half")

__all__ = [  # noqa: RUF022 - the seed's order, then the partners
    "Float2Half",
    "Float2Bfloat16",
    "Float2Int32",
    "Float2E4m3",
    "Float2E5m2",
    "Float2Hif8",
    "Half2Int8",
    "Half2Int4x2",
    "Half2Hif8",
    "Bfloat162E2m1x2",
    "Bfloat162E1m2x2",
    "Half2Float",
    "E4m32Float",
    "E5m22Float",
    "Hif82Float",
    "Bfloat162Float",
    "Int322Float",
    "Int82Half",
    "Int4x22Half",
    "Hif82Half",
    "E2m1x22Bfloat16",
    "E1m2x22Bfloat16",
    "Half2Bfloat16",
    "Bfloat162Half",
]
