"""One element's way through the pipe, stage by stage."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from narrowcast.catalog.fixpipe_modes import FixpipeMode
from narrowcast.catalog.formats import formats
from narrowcast.errors import ShapeError
from narrowcast.fixpipe import operands, pipeline
from narrowcast.fixpipe.addressing import Array, accumulator_index, ceil_to
from narrowcast.fixpipe.operation import Fixpipe
from narrowcast.fixpipe.pipeline import Parameters
from narrowcast.fixpipe.store import Store
from narrowcast.operation import Choices, Control, Semantics, execute
from narrowcast.operation.protocol import named_inputs
from narrowcast.quant import decode
from narrowcast.schema import IntFormat


@dataclass(frozen=True)
class Step:
    """One stage: its name, what left it, and why."""

    stage: str
    result: str
    why: str


@dataclass(frozen=True)
class Journey:
    """The whole way of one element.

    Args:
        row: m.
        column: n.
        mode: the mode's name.
        steps: the stages in order.
        code: the stored code.
        value: its value.
    """

    row: int
    column: int
    mode: str
    steps: tuple[Step, ...]
    code: int
    value: float

    def __str__(self) -> str:
        width = max(len(step.stage) for step in self.steps)
        return "\n".join(f"{step.stage:{width}}  {step.result}  ({step.why})" for step in self.steps)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "row": self.row,
            "column": self.column,
            "mode": self.mode,
            "code": self.code,
            "value": self.value if np.isfinite(self.value) else str(self.value),
            "steps": [{"stage": s.stage, "result": s.result, "why": s.why} for s in self.steps],
        }


def journey(
    op: Fixpipe,
    inputs: Any,
    row: int,
    column: int,
    semantics: Semantics | None = None,
    control: Control | None = None,
    store: Store | None = None,
) -> Journey:
    """Follow the element of row m, column n from accumulator to address.

    Args:
        op: the instruction.
        inputs: its arrays.
        row: m.
        column: n.
        semantics: whom to believe.
        control: the program's control bits.
        store: the instruction's result, where it has been run already.

    Returns:
        A :class:`Journey`; ``str()`` of it is the text.

    Raises:
        ShapeError: an element outside the matrix.

    Example:
        >>> op = Fixpipe(mode="REQ8")
        >>> way = journey(op, {"acc": np.int32([[300]]), "words": np.uint64([0x67003F800000])}, 0, 0)
        >>> [step.result for step in way.steps if step.stage in ("product", "s9 clamp", "offset", "s8 clamp")]
        ['300', '255', '55', '55']
    """
    semantics = semantics or Semantics()
    control = control or Control()
    named = named_inputs(op, inputs)
    store = store or execute(op, inputs, semantics, control)
    acc, _ = operands.accumulators(op, named["acc"])
    if not 0 <= row < acc.shape[1] or not 0 <= column < acc.shape[2]:
        raise ShapeError(f"element {row},{column} lies outside the {acc.shape[1]} x {acc.shape[2]} accumulators.")
    choices = Choices(semantics, frozenset(op.switches), "Fixpipe")
    words, whole = operands.parameters(op, named, acc.shape[-2:], choices)
    p = _of_element(whole, row, column, acc.shape[-2:])
    one = np.ascontiguousarray(acc[0, row : row + 1, column : column + 1])
    steps = [_source(op, one, row, column, acc.shape[1])]
    if p.bias is not None:
        one = pipeline.add_bias(one, p)
        steps.append(Step("bias", _text(one), f"plus {_text(p.bias)}, first stage of the pipe [seed:2.3]"))
    mode = op.mode_row
    if mode.takes_word and words is not None:
        word = words[(0 if words.size == 1 else column if whole.scale.ndim == 1 else row)]
        steps.append(Step("word", f"0x{int(word):016X}", _word_text(mode, p)))
    if mode.shifts or mode.bypass:
        codes = pipeline.convert(one, mode, replace(p, bias=None), choices, control)
        steps.append(Step("shift" if mode.shifts else "bypass", _code_text(codes, p.target), mode.purpose))
    else:
        value = _multiply(steps, one, mode, p, choices)
        finish = _integer_steps if mode.integer else _float_steps
        codes = finish(steps, value, mode, p, choices, control)
    steps.append(_address(op, store, row, column))
    code = int(codes.reshape(-1)[0])
    return Journey(row, column, mode.name, tuple(steps), code, float(decode(codes, p.target).reshape(-1)[0]))


def _of_element(p: Parameters, row: int, column: int, shape: tuple[int, ...]) -> Parameters:
    def pick(field: Array | None) -> Array | None:
        if field is None or field.size == 1:
            return None if field is None else field.reshape(1)
        return field[row] if field.ndim == 2 else field[column : column + 1]

    fields: dict[str, Any] = {name: pick(getattr(p, name)) for name in ("scale", "offset", "alpha", "bias", "shift")}
    return replace(p, **fields)


def _text(value: npt.ArrayLike) -> str:
    item = np.asarray(value).reshape(-1)[0]
    return str(int(item)) if np.isfinite(item) and float(item).is_integer() and abs(item) < 1e16 else f"{item!s}"


def _code_text(codes: Array, target: str) -> str:
    row = formats[target]
    code = int(codes.reshape(-1)[0])
    return f"{row.name} 0x{code:0{(row.bits + 3) // 4}X} = {_text(decode(codes, target))}"


def _source(op: Fixpipe, one: Array, row: int, column: int, rows: int) -> Step:
    stride = op.source_stride if op.source_stride is not None else ceil_to(rows * op.source_row_stride, 16)
    index = int(accumulator_index(row * op.source_row_stride, column, stride))
    kind = "S32" if one.dtype == np.int32 else "FP32"
    start = op.source_offset_bytes
    return Step("accumulator", _text(one), f"{kind}, row {row}, column {column}; L0C byte {start + 4 * index}")


def _word_text(mode: FixpipeMode, p: Parameters) -> str:
    parts = [] if mode.shifts else [f"scale {float(p.scale[0])!r}"]
    if mode.offset or int(p.offset[0]):
        parts.append(f"offset {int(p.offset[0])}")
    if len(mode.targets) > 1:
        parts.append(f"bit 46 {'set: S8' if p.target == 's8' else 'clear: U8'}")
    if p.shift is not None:
        parts.append(f"shift {int(p.shift.reshape(-1)[0])}")
    return ", ".join(parts)


def _multiply(steps: list[Step], one: Array, mode: FixpipeMode, p: Parameters, choices: Choices) -> Array:
    if one.dtype == np.int32:
        wide = pipeline.fp32_accumulator(one, choices)
        rule = choices.choose("fixpipe_s32_to_fp32")
        change = "exact" if int(wide[0, 0]) == int(one[0, 0]) else f"rounded by {int(wide[0, 0]) - int(one[0, 0]):+d}"
        steps.append(Step("to FP32", _text(wide), f"{change}; fixpipe_s32_to_fp32={rule}"))
    negative = bool(one[0, 0] < 0)
    if p.alpha is not None and choices.choose("fixpipe_relu_order") == "multiplier":
        chosen, name = (p.alpha, "M2") if negative else (p.scale, "M1")
        sign = "negative" if negative else "not negative"
        steps.append(Step("multiplier", f"{name} = {float(chosen[0])!r}", f"the accumulator is {sign}"))
    elif mode.scaled:
        steps.append(Step("multiplier", f"M1 = {float(p.scale[0])!r}", "no activation chooses another one here"))
    value = pipeline.product(one, mode, p, choices)
    if mode.scaled or p.alpha is not None:
        kept = "not rounded" if value.dtype == np.float64 else "rounded to FP32"
        steps.append(Step("product", _text(value), f"{kept}; fixpipe_product={choices.choose('fixpipe_product')}"))
    return value


def _integer_steps(
    steps: list[Step], value: Array, mode: FixpipeMode, p: Parameters, choices: Choices, control: Control
) -> Array:
    target = formats[p.target]
    assert isinstance(target, IntFormat)
    finite = np.where(np.isnan(value), value.dtype.type(0), value)
    if choices.choose("fixpipe_s9") == "clamp":
        low, high = pipeline.intermediate(p, choices)
        bits = (high - low + 1).bit_length() - 1
        whole = pipeline.to_whole(np.clip(finite, -pipeline.BEYOND_INT, pipeline.BEYOND_INT), choices)
        rule = choices.choose("fixpipe_integer_rounding")
        steps.append(Step("rounding", _text(whole), f"to an integer, {rule}"))
        clamped = np.clip(whole, low, high)
        steps.append(Step(f"s{bits} clamp", _text(clamped), f"to {low}..{high}, before the offset"))
        total = (clamped + p.offset).astype(np.float64)
        steps.append(Step("offset", _text(total), f"plus {int(p.offset[0])}"))
    else:
        total = finite + p.offset.astype(value.dtype)
        steps.append(Step("offset", _text(total), f"plus {int(p.offset[0])}, in FP32; fixpipe_s9=none"))
    codes = pipeline.to_integer(value, p, choices)
    if p.alpha is not None and choices.choose("fixpipe_relu_order") == "after-offset":
        steps.append(_late_activation(total, p.alpha))
    if p.clip is not None:
        steps.append(_clip(p.clip, choices))
    how = choices.choose("fixpipe_integer_overflow")
    steps.append(Step(f"{p.target} clamp", _text(decode(codes, p.target)), f"to {target.min}..{target.max}, {how}"))
    return codes


def _float_steps(
    steps: list[Step], value: Array, mode: FixpipeMode, p: Parameters, choices: Choices, control: Control
) -> Array:
    codes = pipeline.to_float(value, mode, p, choices, control)
    total = value
    if mode.scaled and choices.choose("fixpipe_float_offset") == "added":
        total = total + p.offset.astype(value.dtype)
        why = f"plus {int(p.offset[0])}, in FP32; fixpipe_float_offset=added"
        steps.append(Step("offset", _text(total), why))
    if p.alpha is not None and choices.choose("fixpipe_relu_order") == "after-offset":
        steps.append(_late_activation(total, p.alpha))
    if p.clip is not None:
        steps.append(_clip(p.clip, choices))
    bits = f"CTRL[48]={control.ctrl48}" + (f", CTRL[50]={control.ctrl50}" if p.target in ("e4m3", "e5m2") else "")
    steps.append(Step("conversion", _code_text(codes, p.target), f"one rounding, {mode.rounding.value}; {bits}"))
    return codes


def _late_activation(total: Array, alpha: Array) -> Step:
    result = np.where(total < 0, np.where(alpha == 0, 0, total * alpha), total)
    return Step("ReLU", _text(result), "after the offset; fixpipe_relu_order=after-offset")


def _clip(bound: float, choices: Choices) -> Step:
    return Step("clip", f"at most {bound:g}", f"fixpipe_clip_domain={choices.choose('fixpipe_clip_domain')}")


def _address(op: Fixpipe, store: Store, row: int, column: int) -> Step:
    if not store.addressing:
        return Step("address", "none", "the instruction was dropped")
    unit, m, n = 0, row, column
    first = store.addressing[0][0]
    if op.dual == "M" and row >= first.rows:
        unit, m = 1, row - first.rows
    if op.dual == "N" and column >= first.columns:
        unit, n = 1, column - first.columns
    where = store.addressing[unit][0]
    index = int(where.index(m, n))
    bits = op.offset_bits + index * where.bits
    name = f"UB{unit}" if op.dual else op.route
    nibble = ("", " (high nibble)")[bits % 8 // 4] if where.bits == 4 else ""
    return Step("address", f"{name} byte {bits // 8}{nibble}", f"element {index} of {op.layout}, stride {where.step}")
