"""The public functions of block scaling."""

import warnings
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from narrowcast.catalog.formats import formats
from narrowcast.errors import ConstraintError, FormatError, UnsupportedCastError
from narrowcast.mx.blocking import blocked
from narrowcast.mx.operation import GROUP, MxQuant, packed, scheme_of
from narrowcast.mx.rules import NAN_BYTE
from narrowcast.mx.spelling import ScaleRule
from narrowcast.numerics import source_name
from narrowcast.numerics.unpacking import Array
from narrowcast.operation import Choices, Control, Finding, Semantics, execute
from narrowcast.quant import QTensor
from narrowcast.quant.arrays import as_values


def quantize(
    x: npt.ArrayLike,
    format: str,
    rule: str = "ocp-floor",
    block: int = GROUP,
    axis: int = -1,
    rounding: str | None = None,
    *,
    saturate: bool = True,
    pad: bool = True,
    semantics: Semantics | None = None,
    control: Control | None = None,
    out: tuple[Array, Array] | None = None,
    **parameters: float,
) -> QTensor:
    """Quantize blocks of an array to MX elements with one E8M0 scale each.

    Formula: ``byte = rule(max abs of the block)``, ``code = round(x * 2**(127 - byte))``, saturated;
    ``real = code * 2**(byte - 127)``.

    Args:
        x: float32, float16 or bfloat16 array of any shape.
        format: ``e4m3 e5m2 e2m1 e1m2`` (chip) or ``e3m2 e2m3 s8`` (OCP), or an alias.
        rule: scale rule, see ``narrowcast.catalog.scale_rules``; parameters may follow a colon.
        block: elements per scale, a multiple of 32.
        axis: the axis that blocks run along.
        rounding: mode of the element cast; None is the rule's default.
        saturate: False lets elements that a rule of OCP's kind clips become infinity or NaN.
        pad: a short last block is padded with zeros and the record says with how many; False refuses it.
        semantics: whom to believe on disputed points; the default is the device.
        control: the program's control bits (CTRL[50] keeps NaN elements on the chip).
        out: arrays for the codes and the scale bytes, which the result then holds.
        parameters: the rule's own, e.g. ``dst_type_max=7``.

    Returns:
        A :class:`narrowcast.QTensor` with ``scale_format="e8m0"``, scales of shape ``x.shape`` with the axis
        divided by the block, and the rule in its record.

    Raises:
        UnknownNameError: an unknown format, rule or parameter.
        UnsupportedCastError: a rule that does not write the format, take the source or round that way.
        ShapeError: a block that is no multiple of 32, an axis the array lacks, a short block with ``pad=False``, or
            an ``out`` that does not fit.
        ConstraintError: a parameter or a block size the rule does not have.

    Source: the rule's row.

    Example:
        >>> q = quantize(np.float32([[0, 8, 64, 512]]), "e4m3", rule="cann-0")
        >>> q.codes.tolist(), q.scale.tolist(), q.record.padded
        ([[0, 72, 96, 120]], [[128]], 28)
    """
    op = MxQuant(
        format=format,
        rule=str(ScaleRule.parse(rule, parameters)),
        block=block,
        axis=axis,
        rounding=rounding,
        saturate=saturate,
        pad=pad,
    )
    result: QTensor = execute(op, x, semantics, control, out)
    return result


def dequantize(q: QTensor, strict: bool = False, out: Array | None = None) -> Array:
    """Return the real values of an MX tensor: ``code * 2**(byte - 127)`` as float32.

    A block whose scale byte is 255 is NaN, and a ``RuntimeWarning`` carries the finding.

    Args:
        q: an MX tensor (``scale_format="e8m0"``).
        strict: refuse scale bytes of 255 instead.
        out: float32 array for the result.

    Returns:
        float32 array of the codes' shape.

    Raises:
        FormatError: scales that are not E8M0.
        ConstraintError: ``strict`` and a scale byte of 255; ``findings`` says which blocks.

    Source: OCP MX v1.0.

    Example:
        >>> dequantize(quantize(np.float32([[1.0, -3.0]]), "e2m1")).tolist()
        [[1.0, -3.0]]
    """
    found = tuple(findings(q))
    if found and strict:
        raise ConstraintError(str(found[0]), findings=found)
    if found:
        warnings.warn(str(found[0]), RuntimeWarning, stacklevel=2)
    return q.dequantize(out)


def findings(q: QTensor) -> Iterable[Finding]:
    """Yield what is wrong with the scales of an MX tensor.

    Args:
        q: an MX tensor.

    Returns:
        Findings; none when every block is a number.

    Raises:
        FormatError: scales that are not E8M0.

    Source: OCP MX v1.0.

    Example:
        >>> [f.rule for f in findings(quantize(np.float32([[np.inf]]), "e2m1"))]
        ['MX-02']
    """
    if q.scale_format != "e8m0":
        raise FormatError(
            f"an MX tensor has e8m0 scales; these are {q.scale_format}.", hint="Use narrowcast.dequantize."
        )
    bad = np.argwhere(q.scale == NAN_BYTE)
    if bad.size:
        first = [int(i) for i in bad[0]]
        yield Finding(
            rule="MX-02",
            place=f"scale{first}",
            message=f"{len(bad)} of {q.scale.size} blocks have scale byte 255: all their elements are NaN",
            evidence={"blocks": len(bad), "of": int(q.scale.size), "first": first},
            fix="Look for infinities and NaN in the input; rule " + q.record.rule + " marks such blocks with 255.",
            source="OCP MX v1.0",
        )


def shared_scales(
    x: npt.ArrayLike,
    format: str,
    rule: str = "ocp-floor",
    block: int = GROUP,
    *,
    semantics: Semantics | None = None,
    **parameters: float,
) -> tuple[Array, Array]:
    """Return the scale bytes of blocks along the last axis, and what their elements are multiplied by.

    Formula: ``multiplier = 2**(127 - byte)``; 0 where the rule flushes a block, NaN for byte 255.

    Args:
        x: float32, float16 or bfloat16 array.
        format: element format.
        rule: scale rule, not ``mse2``.
        block: elements per scale.
        semantics: whom to believe.
        parameters: the rule's own.

    Returns:
        uint8 bytes and float32 multipliers, shape ``x.shape`` with the last axis divided by the block.

    Raises:
        UnsupportedCastError: as for :func:`quantize`; ``mse2``, whose scale depends on every element.

    Source: the rule's row.

    Example:
        >>> [a.tolist() for a in shared_scales(np.float32([448.0, 1.0]), "e4m3", "pto-nv")]
        [[127], [1.0]]
    """
    op = MxQuant(format=format, rule=str(ScaleRule.parse(rule, parameters)), block=block)
    if op.rule == "mse2":
        raise UnsupportedCastError("the scale of rule mse2 depends on every element.", hint="Use quantize(...).scale.")
    array = as_values(x)
    choices = Choices(semantics or Semantics(), frozenset(op.switches), "MxQuant")
    scheme = scheme_of(op, choices, Control())
    source = source_name(array.dtype) or ""
    rows = np.ascontiguousarray(array).reshape(-1, array.shape[-1])
    found, multiplier = scheme.scales(scheme.largest(blocked(rows, block)), source)
    grid = (*array.shape[:-1], -(-array.shape[-1] // block))
    return found.reshape(grid), multiplier.reshape(grid)


def element_formats() -> tuple[str, ...]:
    """Name the element formats that some scale rule writes, in catalog order."""
    from narrowcast.catalog.scale_rules import scale_rules

    written = {name for row in scale_rules.values() for name in row.formats}
    return tuple(name for name in formats if name in written)


def quantize_packed(
    x: npt.ArrayLike,
    format: str,
    rule: str = "ocp-floor",
    block: int = GROUP,
    rounding: str | None = None,
    *,
    semantics: Semantics | None = None,
    control: Control | None = None,
    **parameters: float,
) -> tuple[Array, Array]:
    """Quantize blocks along the last axis to 4-bit elements as they lie in memory, two per byte.

    Formula: that of :func:`quantize`, then ``pack``: the even element in the low nibble.

    Args:
        x: float32, float16 or bfloat16 array of any shape.
        format: ``e2m1`` or ``e1m2``.
        rule: scale rule.
        block: elements per scale.
        rounding: mode of the element cast.
        semantics: whom to believe.
        control: the program's control bits.
        parameters: the rule's own.

    Returns:
        uint8 bytes, the last axis halved, and uint8 scales, the last axis divided by the block.

    Raises:
        FormatError: an element format of more than 4 bits.
        NarrowcastError: as :func:`quantize`.

    Source: the rule's row.

    Example:
        >>> [a.tolist() for a in quantize_packed(np.float32([1.0, -6.0, 0.5]), "e2m1")]
        [[242, 1], [127]]
    """
    row = formats[format]
    if not row.packs:
        raise FormatError(
            f"{row.name} codes have {row.bits} bits; only 4-bit codes share a byte.", hint="Use quantize."
        )
    op = MxQuant(format=format, rule=str(ScaleRule.parse(rule, parameters)), block=block, rounding=rounding)
    return packed(op, as_values(x), semantics or Semantics(), control or Control())
