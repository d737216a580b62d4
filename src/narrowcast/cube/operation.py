"""Mmad and MmadMx as operations."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from narrowcast import layout
from narrowcast.catalog import cube
from narrowcast.catalog.formats import formats
from narrowcast.cube.accumulate import Array, float_product, integer_product
from narrowcast.errors import FormatError, ShapeError, UnsupportedCastError, unknown_name
from narrowcast.operation import Choices, Control, Finding, Semantics
from narrowcast.operation.protocol import Inputs
from narrowcast.quant import decode

MX_BLOCK = 32
_SIGNIFICANT = {"fp16": 11, "bf16": 8, "fp32": 24, "hif8": 4, "e4m3": 4, "e5m2": 3, "e2m1": 2, "e1m2": 3}
"""Significant bits of a value."""
_BIAS_DTYPES = {"s32": ("int32",), "fp32": ("float32", "float16", "bfloat16")}


@dataclass(frozen=True, kw_only=True)
class Mmad:
    """``C = C0 + A @ B``: the bias is the accumulator's initial value.

    Args:
        a_format: format of A [M, K].
        b_format: format of B [K, N].
        acc_layout: ``plain`` [M, N], or ``NZ``: L0C's fractals [N/16, M/16, 16, 16], padded with zeros; a bias [M, N]
            is in the same layout.
    """

    a_format: str = "s8"
    b_format: str = "s8"
    acc_layout: str = "plain"

    inputs: ClassVar[tuple[str, ...]] = ("a", "b", "bias")
    optional: ClassVar[tuple[str, ...]] = ("bias",)
    scaled: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.acc_layout not in ("plain", "NZ"):
            raise unknown_name("accumulator layout", self.acc_layout, ("plain", "NZ"))
        object.__setattr__(self, "a_format", formats[self.a_format].name)
        object.__setattr__(self, "b_format", formats[self.b_format].name)

    @property
    def pair(self) -> cube.CubePair:
        """The catalog row of this operand pair."""
        for row in cube.ROWS:
            both = self.a_format in row.formats and self.b_format in row.formats
            if row.scaled == self.scaled and both and (row.mixed or self.a_format == self.b_format):
                return row
        rows = [row for row in cube.ROWS if row.scaled == self.scaled]
        legal = "; ".join(" or ".join(row.formats) + (" (mixed)" if row.mixed else "") for row in rows)
        raise UnsupportedCastError(
            f"{type(self).__name__} has no operands {self.a_format} x {self.b_format} (legal: {legal}).",
            hint="Cast one operand first.",
            source="asc-devkit:Mmad",
        )

    @property
    def switches(self) -> tuple[str, ...]:
        """FP32 accumulation order."""
        return ("cube_accumulation",) if self.pair.accumulator == "fp32" else ()

    def violations(self, semantics: Semantics) -> Iterable[Finding]:
        """Refuse operand types the chip lacks."""
        if semantics.chip in ("3510", "2201") and semantics.chip not in self.pair.chips:
            yield Finding(
                rule="VEC-12",
                place=type(self).__name__,
                message=f"{self.a_format} x {self.b_format} exists on chip {', '.join(self.pair.chips)} only",
                fix="Guard it with __NPU_ARCH__ == 3510, or use s8, fp16 or bf16.",
                source="seed:5.2#2",
            )

    def run(self, inputs: Inputs, choices: Choices, control: Control, out: Any = None) -> Array:
        """Multiply."""
        a = operand(inputs["a"], self.a_format, "a")
        b = operand(inputs["b"], self.b_format, "b")
        check_inner(a.shape, b.shape)
        accumulator = self.pair.accumulator
        bias = self._initial(inputs["bias"], (a.shape[0], b.shape[1]))
        if accumulator == "s32":
            return self._deliver(integer_product(a.astype(np.int8), b.astype(np.int8), bias), out)
        return self._deliver(self._sum(a, b, bias, choices), out)

    def _sum(self, a: Array, b: Array, bias: Array | None, choices: Choices) -> Array:
        bits = _SIGNIFICANT[self.a_format] + _SIGNIFICANT[self.b_format]
        return float_product(a, b, bias, choices.choose("cube_accumulation"), product_bits=bits)

    def _initial(self, bias: Any, shape: tuple[int, int]) -> Array | None:
        if bias is not None and self.acc_layout == "NZ" and np.ndim(bias) > 2:
            bias = layout.unpack(np.asarray(bias), "l0c", shape)
        return initial(bias, self.pair.accumulator, shape)

    def _deliver(self, result: Array, out: Array | None) -> Array:
        if self.acc_layout == "NZ":
            result = layout.pack(result, "l0c")
        if out is None:
            return result
        if out.shape != result.shape or out.dtype != result.dtype:
            raise ShapeError(f"out must be {result.dtype} {result.shape}; got {out.dtype} {out.shape}.")
        out[...] = result
        return out


@dataclass(frozen=True, kw_only=True)
class MmadMx(Mmad):
    """``C = C0 + sum over k of (sA[i, k/32] A[i, k]) (sB[k/32, j] B[k, j])`` with E8M0 scales.

    Args:
        a_scale_layout: ``nd`` [M, K/32], or a layout of scales: ``scale-a-nd``, ``scale-a-dn``, ``scale-zz``.
        b_scale_layout: ``nd`` [K/32, N], or ``scale-b-nd``, ``scale-transposed``, ``scale-nn``, ``scale-nn-k-outer``.
    """

    a_format: str = "e4m3"
    b_format: str = "e4m3"
    a_scale_layout: str = "nd"
    b_scale_layout: str = "nd"

    inputs: ClassVar[tuple[str, ...]] = ("a", "a_scale", "b", "b_scale", "bias")
    scaled: ClassVar[bool] = True

    def run(self, inputs: Inputs, choices: Choices, control: Control, out: Any = None) -> Array:
        """Multiply scaled operands."""
        a = operand(inputs["a"], self.a_format, "a")
        b = operand(inputs["b"], self.b_format, "b")
        check_inner(a.shape, b.shape)
        k = a.shape[1]
        if k % (2 * MX_BLOCK):
            raise ShapeError(
                f"K = {k} is not a multiple of {2 * MX_BLOCK}.", hint="Pad K with zeros.", source="asc-devkit:MmadMx"
            )
        scale_a = _scales(inputs["a_scale"], (a.shape[0], k // MX_BLOCK), self.a_scale_layout, "a_scale")
        scale_b = _scales(inputs["b_scale"], (k // MX_BLOCK, b.shape[1]), self.b_scale_layout, "b_scale")
        bias = self._initial(inputs["bias"], (a.shape[0], b.shape[1]))
        # float64 holds a scaled element exactly: at most 4 significant bits and an exponent below 300.
        wide_a = a.astype(np.float64) * np.repeat(scale_a, MX_BLOCK, axis=1)
        wide_b = b.astype(np.float64) * np.repeat(scale_b, MX_BLOCK, axis=0)
        return self._deliver(self._sum(wide_a, wide_b, bias, choices), out)


def operand(array: Any, fmt: str, name: str) -> Array:
    """Return the values of an operand given as values of its format or as codes."""
    array = np.asarray(array)
    row = formats[fmt]
    if array.ndim != 2:
        raise ShapeError(f"{name} has {array.ndim} axes; a matrix has 2.")
    if array.dtype.name == row.ml_dtype:
        return array if fmt == "s8" else np.asarray(array.astype(np.float32))
    if array.dtype == row.code_dtype:
        values = decode(array, fmt)
        return values.astype(np.int8) if fmt == "s8" else values
    raise FormatError(
        f"{name} is {array.dtype}; {fmt} operands are {row.ml_dtype or row.code_dtype} values "
        f"or {row.code_dtype} codes.",
        hint=f'Use narrowcast.encode(values, "{fmt}") first.',
    )


def check_inner(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    """Refuse matrices whose inner sizes differ."""
    if a[1] != b[0]:
        raise ShapeError(f"inner sizes differ: a is [M, K] = {list(a)}, b is [K, N] = {list(b)}.")


def initial(bias: Any, accumulator: str, shape: tuple[int, int]) -> Array | None:
    """Widen a bias to the accumulator's type: [N] or [M, N]."""
    if bias is None:
        return None
    array = np.asarray(bias)
    legal = _BIAS_DTYPES[accumulator]
    if array.dtype.name not in legal:
        raise FormatError(
            f"bias is {array.dtype}; an {accumulator} accumulator starts from {' or '.join(legal)}.",
            source="asc-devkit:DataCopy to the bias table",
        )
    if array.shape not in ((shape[1],), (1, shape[1]), shape):
        raise ShapeError(f"bias has shape {array.shape}; expected ({shape[1]},) or {shape}.")
    return array.astype({"s32": np.int32, "fp32": np.float32}[accumulator])


def _scales(scale: Any, shape: tuple[int, int], name_of_layout: str, name: str) -> Array:
    array = np.asarray(scale)
    if array.dtype.name == "float8_e8m0fnu":
        array = array.view(np.uint8)
    if array.dtype != np.uint8:
        raise FormatError(f"{name} is {array.dtype}; scales are E8M0 codes (uint8).")
    if name_of_layout == "nd" and array.shape != shape:
        raise ShapeError(f"{name} has shape {array.shape}; expected {shape}: one scale per {MX_BLOCK} along K.")
    return decode(layout.unpack(array, name_of_layout, shape), "e8m0").astype(np.float64)
