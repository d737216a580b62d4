"""One Fixpipe instruction as data."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from narrowcast.catalog import machine
from narrowcast.catalog.fixpipe_modes import FixpipeMode, fixpipe_modes
from narrowcast.catalog.formats import formats
from narrowcast.errors import FormatError, NarrowcastError, ShapeError, UnsupportedCastError, unknown_name
from narrowcast.fixpipe.addressing import C0, Addressing, Array, ceil_to, from_fractal, layout_name
from narrowcast.fixpipe.pipeline import Parameters, convert, switches_of
from narrowcast.fixpipe.rules import EMULATED, RULES, STORE_GRAIN, Call
from narrowcast.fixpipe.store import Chunk, Rate, Store
from narrowcast.fixpipe.words import split_words, truncate_scale
from narrowcast.operation import Choices, Control, Finding, Semantics
from narrowcast.operation.findings import refuse
from narrowcast.operation.protocol import Inputs

ACTIVATIONS = (None, "relu", "leaky", "prelu")
ROUTES = ("GM", "L1", "UB")
DUMMY_BYTE = 0xA5
"""Stands for what the chip would write beyond N when the accumulator array holds nothing there."""


@dataclass(frozen=True, kw_only=True)
class Fixpipe:
    """Convert accumulators on their way out of L0C and store them.

    Args:
        mode: a mode of the catalog, seed or vendor name.
        target: destination format, for the modes whose sign bit chooses (default: the bit in the words).
        activation: None, ``relu``, ``leaky`` (one slope) or ``prelu`` (a slope per column).
        clip: upper bound of clip-ReLU, a value of the destination.
        layout: ``NZ2ND`` (ND), ``NZ2DN`` (DN) or ``NZ2NZ`` (NZ).
        route: ``GM``, ``L1`` or ``UB``.
        m: rows of a NZ accumulator, or to use of a plain one.
        n: columns, likewise.
        acc_layout: ``plain`` [M, N] or ``NZ`` (L0C's fractals, flat).
        stride: destination stride in elements.
        split: FP32 channel split.
        dual: ``M`` or ``N``: halves go to UB0 and UB1.
        offset_bytes: destination offset; a half byte is written ``.5``.
        source_offset_bytes: offset of the tile in L0C.
        parameters_from: where the parameters are staged.
        parameter_source_bytes: L1 address of the parameters.
        parameter_target_bytes: buffer address of the parameters.
        post_mode: must be 0.
        accept_dummy: the consumer ignores dummy columns.
        enforce_limits: refuse what one instruction cannot hold instead of issuing several.
        on_violation: ``raise``, or ``emulate`` the documented consequence.
        table: ``vendor`` or ``seed`` rates; None: the seed's for GM, the vendor's for L1 and UB.
    """

    mode: str
    target: str | None = None
    activation: str | None = None
    clip: float | None = None
    layout: str = "NZ2ND"
    route: str = "GM"
    m: int | None = None
    n: int | None = None
    acc_layout: str = "plain"
    stride: int | None = None
    split: bool = False
    dual: str | None = None
    offset_bytes: float = 0
    source_offset_bytes: int = 0
    parameters_from: str = "L1"
    parameter_source_bytes: int = 0
    parameter_target_bytes: int = 0
    post_mode: int = 0
    accept_dummy: bool = False
    enforce_limits: bool = False
    on_violation: str = "raise"
    table: str | None = None

    inputs: ClassVar[tuple[str, ...]] = ("acc", "words", "alpha", "bias")

    def __post_init__(self) -> None:
        row = fixpipe_modes[self.mode]
        object.__setattr__(self, "mode", row.name)
        object.__setattr__(self, "layout", layout_name(self.layout))
        if self.target is not None:
            object.__setattr__(self, "target", formats[self.target].name)
            if self.target not in row.targets:
                raise UnsupportedCastError(
                    f"mode {row.name} stores {' or '.join(row.targets)}, not {self.target}.", source=row.source
                )
        for kind, value, legal in (
            ("activation", self.activation, ACTIVATIONS),
            ("accumulator layout", self.acc_layout, ("plain", "NZ")),
            ("dual destination", self.dual, (None, "M", "N")),
            ("violation policy", self.on_violation, ("raise", "emulate")),
            ("rate table", self.table, (None, "vendor", "seed")),
        ):
            if value not in legal:
                raise unknown_name(kind, value, [str(v) for v in legal])
        for part in self.route.split("+"):
            if part not in ROUTES:
                raise unknown_name("route", part, ROUTES)
        if self.acc_layout == "NZ" and (self.m is None or self.n is None):
            raise ShapeError("an NZ accumulator needs m and n, which its padded storage does not tell.")

    @property
    def mode_row(self) -> FixpipeMode:
        """The mode's catalog row."""
        return fixpipe_modes[self.mode]

    @property
    def result_bits(self) -> int:
        """Width of a stored element."""
        return formats[self.target or self.mode_row.targets[0]].bits

    @property
    def offset_bits(self) -> int:
        """Destination offset in bits."""
        return int(self.offset_bytes * 8)

    @property
    def switches(self) -> tuple[str, ...]:
        """Disputed points this mode and activation touch."""
        return switches_of(self.mode_row, self.activation is not None, self.clip is not None)

    def violations(self, semantics: Semantics) -> Iterable[Finding]:
        """Rules broken by the parameters alone; data is checked when running."""
        row = self.mode_row
        if semantics.authority not in row.authorities:
            raise UnsupportedCastError(
                f"authority {semantics.authority} has no mode {row.name} (it exists under {', '.join(row.authorities)}).",
                source=row.source,
            )
        if semantics.chip in ("3510", "2201") and semantics.chip not in row.chips:
            raise UnsupportedCastError(
                f"mode {row.name} does not exist on chip {semantics.chip} (it does on {', '.join(row.chips)}).",
                hint=f"Legal there: {', '.join(r.name for r in fixpipe_modes.values() if semantics.chip in r.chips)}.",
                source=row.source,
            )
        if self.on_violation == "raise":
            yield from check(Call(self))

    def run(self, inputs: Inputs, choices: Choices, control: Control, out: Any = None) -> Store:
        """Convert, lay out, store."""
        acc, full = self._accumulator(inputs["acc"])
        words, scale, offset, target = self._parameters(inputs["words"], acc.shape[1], choices)
        alpha = self._alpha(inputs["alpha"], acc.shape[1])
        found = self._check(acc, scale, alpha)
        call = Call(self, acc)
        if any(f.rule == "FIXP-06" for f in found):
            return self._dropped(call, target, found)
        bias = inputs["bias"]
        if bias is not None and choices.choose("fixpipe_bias") == "accumulator":
            raise NarrowcastError(
                "the bias belongs in the accumulator: pass it to mmad, which starts from it.",
                hint='Or choose the seed\'s pipe with semantics.override(fixpipe_bias="pipe").',
                source="asc-devkit:Mmad; seed:2.3",
            )
        p = Parameters(scale, offset, target, alpha, None if bias is None else np.asarray(bias), self.clip)
        codes = convert(acc, self.mode_row, p, choices, control)
        return self._store(codes, full, p, choices, control, words, found)

    # Inputs ------------------------------------------------------------------------------------------------

    def _accumulator(self, acc: Any) -> tuple[Array, Array]:
        """The m x n accumulators, and everything the array holds beyond them."""
        dtype = {"s32": "int32", "fp32": "float32"}[self.mode_row.accumulator]
        array = np.asarray(acc)
        if array.dtype.name != dtype:
            raise FormatError(
                f"mode {self.mode} takes {self.mode_row.accumulator} accumulators ({dtype}); got {array.dtype}.",
                source=self.mode_row.source,
            )
        if self.acc_layout == "NZ":
            assert self.m is not None and self.n is not None
            full = from_fractal(array, self.m, ceil_to(self.n, C0))
        else:
            if array.ndim != 2:
                raise ShapeError(f"accumulators are [M, N]; got {array.ndim} axes.")
            full = array
        m = full.shape[0] if self.m is None else self.m
        n = full.shape[1] if self.n is None else self.n
        if m > full.shape[0] or n > full.shape[1]:
            raise ShapeError(f"m x n = {m} x {n} is larger than the accumulator array {full.shape}.")
        return full[:m, :n], full[:m]

    def _parameters(self, words: Any, columns: int, choices: Choices) -> tuple[Array, Array, Array, str]:
        row = self.mode_row
        one = np.ones(1, dtype=np.float32)
        if not row.scaled:
            return np.zeros(0, dtype=np.uint64), one, np.zeros(1, dtype=np.int64), row.targets[0]
        if words is None:
            raise FormatError(f"mode {row.name} needs a parameter word.", hint="Pass param=QuantParam(scale).")
        array = np.atleast_1d(np.asarray(words, dtype=np.uint64))
        if array.shape not in ((1,), (columns,)):
            raise ShapeError(f"parameter words have shape {array.shape}; N = {columns} columns need 1 or {columns}.")
        if array.size > 1:
            self._check_vector(choices)
        signed_offset = not row.offset or choices.choose("fixpipe_offset_sign") == "signed"
        scale, offset, signed = split_words(array, offset_signed=signed_offset)
        if choices.choose("fixpipe_scale_bits") == "fp32" and array.size == 1:
            scale = (array & np.uint64(0xFFFFFFFF)).astype(np.uint32).view(np.float32)
        if row.targets == ("s4",) and choices.choose("fixpipe_s4_offset") == "s5":
            offset = ((offset & 0x1F) ^ 0x10) - 0x10
        if not row.offset:
            offset = np.zeros_like(offset)
        target = self.target or row.targets[0]
        if len(row.targets) > 1 and self.target is None:
            if signed.any() != signed.all():
                raise FormatError("parameter words mix S8 and U8 columns (bit 46); one instruction stores one type.")
            target = row.targets[0] if signed[0] else row.targets[1]
        return array, scale, offset, target

    def _check_vector(self, choices: Choices) -> None:
        row = self.mode_row
        if not row.vector or (choices.authority == "seed" and not row.seed_vector):
            raise UnsupportedCastError(
                f"mode {row.name} takes one parameter word{', by the seed' if row.vector else ''}, not one per column.",
                source="seed:2.1" if row.vector else row.source,
            )

    def _alpha(self, alpha: Any, columns: int) -> Array | None:
        if self.activation is None:
            return None
        if self.activation == "relu":
            return np.zeros(1, dtype=np.float32)
        array = np.atleast_1d(np.asarray(alpha, dtype=np.float32)) if alpha is not None else np.zeros(0)
        wanted = (1,) if self.activation == "leaky" else (columns,)
        if array.shape != wanted:
            raise ShapeError(f"activation {self.activation} needs slopes of shape {wanted}; got {array.shape}.")
        return truncate_scale(array)

    def _check(self, acc: Array, scale: Array, alpha: Array | None) -> tuple[Finding, ...]:
        arrays = [("scale", scale)] if self.mode_row.scaled else []
        if alpha is not None and self.activation != "relu":
            arrays.append(("slope", alpha))
        found = tuple(check(Call(self, acc, tuple(arrays))))
        refused = found if self.on_violation == "raise" else tuple(f for f in found if f.rule not in EMULATED)
        refuse(refused, f"Fixpipe {self.mode}")
        return found

    # Store -------------------------------------------------------------------------------------------------

    def _store(
        self,
        codes: Array,
        full: Array,
        p: Parameters,
        choices: Choices,
        control: Control,
        words: Array,
        found: tuple[Finding, ...],
    ) -> Store:
        m, n = codes.shape
        rows = {"M": ((slice(0, m // 2), slice(0, n)), (slice(m // 2, m), slice(0, n)))}
        cuts = {"N": ((slice(0, m), slice(0, n // 2)), (slice(0, m), slice(n // 2, n))), **rows}
        parts = cuts.get(self.dual or "", ((slice(0, m), slice(0, n)),))
        bits = formats[p.target].bits
        beyond = None if full.shape[1] <= n else self._beyond(full[:, n:], p, choices, control)
        tail = choices.choose("nd_tail")
        laid = []
        for cut in parts:
            part = codes[cut]
            where = Addressing(self.layout, *part.shape, bits, self.stride, self.split)
            laid.append((where, *_lay_out(part, where, beyond, tail, self._start(found, bits))))
        elements = m * n
        written = sum(int(w.sum()) for _, _, w, _ in laid)
        rates = self._rates(elements, bits)
        return Store(
            format=p.target,
            shape=(m, n),
            storage=tuple(s for _, s, _, _ in laid),
            written=tuple(w for _, _, w, _ in laid),
            dummy=tuple(d for _, _, _, d in laid),
            addressing=tuple(a for a, _, _, _ in laid),
            route=self.route,
            elements=elements,
            bytes=-(-written * bits // 8),
            cycles=next(r.cycles for r in rates if r.used),
            rates=rates,
            chunks=self._chunks(n, words.size > 1 or self.activation == "prelu"),
            dual=self.dual,
            findings=found,
        )

    def _beyond(self, extra: Array, p: Parameters, choices: Choices, control: Control) -> Array | None:
        """Convert accumulator columns beyond N with the last column's parameters, as dummy data."""
        last = replace(p, **{k: getattr(p, k)[..., -1:] for k in ("scale", "offset")})
        return convert(extra, self.mode_row, replace(last, alpha=None, bias=None), choices, control)

    def _start(self, found: tuple[Finding, ...], bits: int) -> int:
        """Elements by which a misaligned store is displaced: its address falls back to the grain."""
        if not any(f.rule == "FIXP-03" for f in found):
            return 0
        grain = 8 if self.layout == "NZ2ND" else 8 * STORE_GRAIN
        return -((self.offset_bits % grain) // bits)

    def _rates(self, elements: int, bits: int) -> tuple[Rate, ...]:
        output = "dual" if self.dual else {32: "bypass", 16: "b16"}.get(bits, "b8")
        used = self.table or machine.DEFAULT_TABLE[self.route.split("+")[0]]
        rates = []
        for table in ("vendor", "seed"):
            try:
                cell = machine.rate(table, self.route, output)
            except StopIteration:
                cell = machine.RateRow(table=table, route=self.route, output=output, rate=None, source="no such cell")
            cycles = None if cell.rate is None else machine.STORE_START_CYCLES + -(-elements // cell.rate)
            rates.append(Rate(table, cell.rate, cycles, table == used, cell.source))
        return tuple(rates)

    def _chunks(self, columns: int, per_column: bool) -> tuple[Chunk, ...]:
        row = machine.buffer("Quantization-pre")
        step = row.entries if per_column else max(columns, 1)
        if per_column and columns > step and self.enforce_limits:
            raise ShapeError(
                f"N = {columns} columns of parameters exceed the {row.entries} entries of the {row.name} buffer.",
                hint="Leave enforce_limits off to issue one instruction per 512 columns.",
                source=row.source,
            )
        width = row.entry_bytes if per_column else 0
        return tuple(
            Chunk(first, min(step, columns - first), width * min(step, columns - first))
            for first in range(0, columns, step)
        )

    def _dropped(self, call: Call, target: str, found: tuple[Finding, ...]) -> Store:
        """Nothing is written."""
        return Store(
            format=target,
            shape=(call.rows, call.columns),
            storage=(),
            written=(),
            dummy=(),
            addressing=(),
            route=self.route,
            elements=0,
            bytes=0,
            cycles=0,
            rates=(),
            chunks=(),
            findings=found,
        )


def check(call: Call) -> Iterator[Finding]:
    """Yield every violation of the Fixpipe's rules by one instruction."""
    for row in RULES:
        yield from row.findings(call, f"Fixpipe {call.op.mode}")


def _lay_out(
    codes: Array, where: Addressing, beyond: Array | None, tail: str, start: int
) -> tuple[Array, Array, Array]:
    """Storage, written mask and dummy mask of one unit buffer."""
    rows, columns = codes.shape
    width = where.written_columns
    if where.layout != "NZ2NZ" and tail == "dummy":
        width = ceil_to(columns, C0)
    padded = codes
    if width > columns:
        padded = np.full((rows, width), _dummy_code(codes.dtype, where.bits), dtype=codes.dtype)
        padded[:, :columns] = codes
        if beyond is not None:
            known = min(width - columns, beyond.shape[1])
            padded[:, columns : columns + known] = beyond[:rows, :known]
    index = where.indices(width)
    size = int(index.max()) + 1 if index.size else 0
    storage = np.zeros(size, dtype=codes.dtype)
    written = np.zeros(size, dtype=np.bool_)
    dummy = np.zeros(size, dtype=np.bool_)
    kept = index + start
    if width > columns and where.layout != "NZ2NZ":  # rows go out in order, so a later one covers earlier dummies
        for row in range(rows):
            _put(storage, written, dummy, kept[row], padded[row], columns)
        return storage, written, dummy
    flat = kept >= 0
    storage[kept[flat]] = padded[flat]
    written[kept[flat]] = True
    late = np.broadcast_to(np.arange(width) >= columns, index.shape)
    dummy[kept[flat & late]] = True
    return storage, written, dummy


def _put(storage: Array, written: Array, dummy: Array, index: Array, codes: Array, columns: int) -> None:
    inside = index >= 0
    storage[index[inside]] = codes[inside]
    written[index[inside]] = True
    dummy[index[inside]] = (np.arange(codes.size) >= columns)[inside]


def _dummy_code(dtype: np.dtype[Any], bits: int) -> Any:
    pattern = int.from_bytes(bytes([DUMMY_BYTE]) * dtype.itemsize, "little")
    return dtype.type(pattern & ((1 << bits) - 1))
