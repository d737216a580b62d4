"""One Fixpipe instruction as data."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from narrowcast.catalog.fixpipe_modes import FixpipeMode, fixpipe_modes
from narrowcast.catalog.formats import formats
from narrowcast.errors import NarrowcastError, UnsupportedCastError, unknown_name
from narrowcast.fixpipe import operands
from narrowcast.fixpipe.addressing import Array, layout_name
from narrowcast.fixpipe.call import Call
from narrowcast.fixpipe.fast import convert_fast
from narrowcast.fixpipe.pipeline import Parameters, in_row_blocks, switches_of
from narrowcast.fixpipe.placing import place
from narrowcast.fixpipe.rules import EMULATED, check
from narrowcast.fixpipe.store import Store
from narrowcast.operation import Choices, Control, Finding, Semantics
from narrowcast.operation.findings import refuse
from narrowcast.operation.protocol import Inputs
from narrowcast.quant import decode

ACTIVATIONS = (None, "relu", "leaky", "prelu")
ROUTES = ("GM", "L1", "UB")
_SIMULATED_DATA = ("FIXP-01", "FIXP-02")
"""Rules on data that the CPU simulator computes through instead of obeying."""


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
        acc_layout: ``plain`` [M, N] or [batches, M, N], or ``NZ`` (L0C's fractals, flat).
        source_stride: of a NZ accumulator: rows from one column of fractals to the next; None: ceil16(m).
        source_row_stride: rows from one row to the next (NZ2DN).
        stride: destination stride in elements.
        batches: matrices of one instruction (ndNum, dnNum).
        source_batch_stride: of a NZ accumulator: rows of 16 elements from one matrix to the next; None: one after
            another.
        batch_stride: destination elements from one matrix to the next; None: one after another.
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
    source_stride: int | None = None
    source_row_stride: int = 1
    stride: int | None = None
    batches: int = 1
    source_batch_stride: int | None = None
    batch_stride: int | None = None
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

    judges_data: ClassVar[bool] = True
    inputs: ClassVar[tuple[str, ...]] = ("acc", "words", "alpha", "bias")
    optional: ClassVar[tuple[str, ...]] = ("words", "alpha", "bias")

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
        operands.check_sizes(self)

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
        known = semantics.authority in row.authorities and (semantics.authority != "seed" or row.in_seed)
        if not known:
            raise UnsupportedCastError(
                f"authority {semantics.authority} has no mode {row.name} (it exists under "
                f"{', '.join(a for a in row.authorities if a != 'seed' or row.in_seed)}).",
                source=row.source,
            )
        if semantics.authority != "pto-spec" and semantics.chip not in row.chips:
            legal = ", ".join(
                r.name
                for r in fixpipe_modes.values()
                if semantics.chip in r.chips and semantics.authority in r.authorities
            )
            raise UnsupportedCastError(
                f"mode {row.name} does not exist on chip {semantics.chip} (it does on {', '.join(row.chips)}).",
                hint=f"Legal there: {legal}.",
                source=row.source,
            )
        bare = [route for route in self.route.split("+") if route not in row.routes]
        if bare:
            raise UnsupportedCastError(
                f"mode {row.name} has no route to {bare[0]} (it has {', '.join(row.routes)}).", source=row.source
            )
        if self.on_violation == "raise":
            yield from check(Call(self))

    def run(self, inputs: Inputs, choices: Choices, control: Control, out: Any = None) -> Store:
        """Convert, lay out, store.

        Args:
            inputs: ``acc``, and where the mode or activation wants them ``words``, ``alpha``, ``bias``.
            choices: the disputed points.
            control: the program's control bits.
            out: one array of result codes for the storage of one unit buffer, else None.
        """
        fractals = operands.whole_fractals(self, inputs["acc"])
        if fractals is not None:
            store = self._run_fractals(fractals, inputs, choices, control, out)
            if store is not None:
                return store
        acc, beyond = operands.accumulators(self, inputs["acc"])
        words, p = operands.parameters(self, inputs, acc.shape[-2:], choices)
        tail = choices.choose("nd_tail")
        if beyond is None and acc.shape[0] == 1:
            done = convert_fast(acc[0], self.mode_row, p, choices, control, into=self._direct(out))
            # The kernel has looked for subnormal accumulators; the rest is known without the data.
            if done is not None and not done[1] and not self._broken(None, p, acc.shape):
                return place(self, done[0][None], None, p, tail, words, (), out)
        found = self._broken(acc, p, acc.shape, choices.chip == "cpu-sim")
        refused = found if self.on_violation == "raise" else tuple(f for f in found if f.rule not in EMULATED)
        refuse(refused, f"Fixpipe {self.mode}")
        if any(f.rule == "FIXP-06" for f in found):
            return self._dropped(acc.shape, p.target, found)
        if p.bias is not None and choices.choose("fixpipe_bias") == "accumulator":
            raise NarrowcastError(
                "the bias belongs in the accumulator: pass it to mmad, which starts from it.",
                hint='Or choose the seed\'s pipe: semantics.override(fixpipe_bias="pipe"), --set fixpipe_bias=pipe.',
                source="asc-devkit:Mmad; seed:2.3",
            )
        codes = self._convert(acc, p, choices, control)
        extra = None if beyond is None else self._convert(beyond, operands.last_column(p), choices, control)
        return place(self, codes, extra, p, tail, words, found, out)

    def _run_fractals(self, acc: Array, inputs: Inputs, choices: Choices, control: Control, out: Any) -> Store | None:
        """Read [N/16, rows, 16] fractals in the one pass that converts them; None where the general way must."""
        assert self.m is not None and self.n is not None
        words, p = operands.parameters(self, inputs, (self.m, self.n), choices)
        if self._broken(None, p, (self.m, self.n)):
            return None
        size, into = (self.m, self.n), self._direct(out)
        done = convert_fast(acc, self.mode_row, p, choices, control, size, acc.shape[1], into)
        # Rows beyond m are not read, so a subnormal one is among the accumulators.
        if done is None or done[1]:
            return None
        return place(self, done[0][None], None, p, choices.choose("nd_tail"), words, (), out)

    def _direct(self, out: Any) -> Any:
        """The output array where results may be written to it as they come."""
        dense = self.layout == "NZ2ND" and self.stride is None and self.batches == 1 and self.dual is None
        return out if dense else None

    def _convert(self, acc: Array, p: Parameters, choices: Choices, control: Control) -> Array:
        if p.scale.ndim > 1:  # one word a row: a matrix at a time
            return np.stack([in_row_blocks(one, self.mode_row, p, choices, control) for one in acc])
        flat = acc.reshape(-1, acc.shape[-1])
        done = convert_fast(flat, self.mode_row, p, choices, control)
        codes = done[0] if done is not None else in_row_blocks(flat, self.mode_row, p, choices, control)
        return codes.reshape(acc.shape)

    def _broken(
        self, acc: Array | None, p: Parameters, shape: tuple[int, ...], simulated: bool = False
    ) -> tuple[Finding, ...]:
        """Rules that the call breaks; without accumulators, those that can be judged without."""
        arrays = [("scale", p.scale)] if self.mode_row.scaled else []
        if p.alpha is not None and self.activation != "relu":
            arrays.append(("slope", p.alpha))
        if p.bias is not None:
            arrays.append(("bias", p.bias))
        found = check(Call(self, acc, tuple(arrays), shape[-2:]))
        return tuple(f for f in found if not (simulated and f.rule in _SIMULATED_DATA))

    def _dropped(self, shape: tuple[int, ...], target: str, found: tuple[Finding, ...]) -> Store:
        """Nothing is written."""
        return Store(
            format=target,
            shape=shape[1:] if shape[0] == 1 else shape,
            storage=(),
            addressing=(),
            route=self.route,
            elements=0,
            bytes=0,
            cycles=0,
            rates=(),
            chunks=(),
            findings=found,
        )

    def show(self, code: Any) -> str:
        """Write a code with its value, where one format is certain."""
        if isinstance(code, str):
            return code  # the shape of a result of another size
        if self.target is None and len(self.mode_row.targets) > 1:
            return f"{int(code):#04x}"
        row = formats[self.target or self.mode_row.targets[0]]
        value = decode(np.asarray([code], dtype=row.code_dtype), row.name)[0]
        return f"{int(code):#0{2 + (row.bits + 3) // 4}x} ({float(value):g})"
