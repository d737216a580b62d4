"""Execute bundle words as the executable ISA specification does: tiles, registers, sticky flags, faults."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from narrowcast.catalog.encodings import DATA_TYPES, REGISTERS
from narrowcast.catalog.formats import ROWS as FORMATS
from narrowcast.catalog.instructions import ROWS as INSTRUCTIONS
from narrowcast.errors import ConstraintError, NarrowcastError
from narrowcast.isa.bundle import tile_name
from narrowcast.isa.fields import Word
from narrowcast.operation import Semantics, execute
from narrowcast.operation.protocol import Operation
from narrowcast.quant import unpack
from narrowcast.tile import TCvt, TDequantScalar, Tile, TileType, TQuantScalar
from narrowcast.tile.scalar import ONE
from narrowcast.tile.spelling import Pad
from narrowcast.tile.tile import element_dtype, pad_element
from narrowcast.tile.types import BLOCK_BYTES, Array

SPECIFICATION = Semantics("pto-spec")
CONTROL = "Fault_BundleControl"
LEGALITY = "Fault_TileLegality"
ALLOCATION = "Fault_TileAllocation"
SLOTS = 16
MOST_BINDINGS = 4

_BY_SELECTOR = {row.selector: row.name for row in INSTRUCTIONS if row.selector is not None}
_BY_CODE = {row.dtype_code: row.name for row in FORMATS if row.dtype_code is not None}
_PADS = (Pad.ZERO, Pad.MAX, Pad.MIN, None)
_LAYOUTS = {"ND": "ND", "DN": "DN", "ZN": "ZN", "NZ": "NZ"}


def fault(kind: str, message: str) -> ConstraintError:
    """Return a fault of the machine; ``code`` is its kind."""
    return ConstraintError(f"{kind}: {message}", code=kind, source="pto-spec:0.58.3")


@dataclass(frozen=True, kw_only=True)
class SpecTileType(TileType):
    """A tile type with the specification's boxes: in ZN, too, they have 16 rows of 32 bytes.

    The library's ZN boxes have 32 bytes of rows and 16 columns; only for 16-bit elements are the two the same.
    """

    @property
    def box_shape(self) -> tuple[int, int]:
        """Rows and columns of a box."""
        return (16, BLOCK_BYTES * 8 // self.bits) if self.layout == "ZN" else super().box_shape


@dataclass
class SpecTile:
    """A local tile of the machine: memory with a type, and which elements are defined."""

    tile: Tile
    defined: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, tile: Tile, everything: bool = False) -> "SpecTile":
        """Wrap a tile whose valid region, or whole static region, is defined.

        A ZN tile of another type is laid out again with the specification's boxes.
        """
        if tile.type.layout == "ZN" and not isinstance(tile.type, SpecTileType):
            own = Tile.empty(
                SpecTileType.of(tile.dtype, tile.type.shape, tile.valid, layout="ZN"), name=tile.name, check=False
            )
            own.write(tile.array())
            tile = own
        defined = np.zeros(tile.type.shape, dtype=np.bool_)
        rows, cols = tile.type.shape if everything else tile.valid
        defined[:rows, :cols] = True
        return cls(tile, defined)


@dataclass
class _Bundle:
    """A header as it is read."""

    start: Word
    datr: Word | None = None
    ior: Word | None = None
    bounds: dict[str, int] = field(default_factory=dict)
    bindings: list[Word] = field(default_factory=list)
    closed: bool = False

    @property
    def name(self) -> str:
        """The instruction."""
        if self.start.row.name != "BSTART.TEPL":
            return self.start.row.name.removeprefix("BSTART.")
        found = _BY_SELECTOR.get(self.start.selector)
        if found is None:
            raise fault("Fault_IllegalInstruction", f"selector {self.start.selector:#05x} is not emulated.")
        return found

    @property
    def dtype(self) -> str:
        """Element format of BSTART."""
        return _format(self.start.codes["DataType"])


def _format(code: int) -> str:
    name = _BY_CODE.get(code)
    if name is None:
        raise fault(LEGALITY, f"data type {DATA_TYPES.get(code, code)} is not emulated.")
    return name


@dataclass
class Machine:
    """A machine with 64 local tiles, 24 registers and sticky flags.

    Args:
        tiles: tiles by index: hand * 16 + slot, hands T, U, M, N.
        registers: 64-bit values by name.
        flags: sticky status flags (NV 1, DZ 2, OF 4, UF 8, NX 16).
        memory: global memory in bytes.

    Source: pto-spec:0.58.3.

    Example:
        >>> from narrowcast.isa import parse_words
        >>> machine = Machine()
        >>> codes = Tile(dtype="s8", shape=(8, 16 * 2), valid=(4, 30))
        >>> machine.tiles[1] = SpecTile.of(codes)
        >>> machine.registers["a0"], machine.registers["a1"] = 0x3DCCCCCD, 3
        >>> text = "9EB19181 00109023 01E00043 00401043 02002043 00310013 0019DE13 00000001"
        >>> machine.run(parse_words(text))
        >>> float(machine.tiles[0].tile.numpy()[0, 0])
        -0.30000001192092896
    """

    tiles: dict[int, SpecTile] = field(default_factory=dict)
    registers: dict[str, int] = field(default_factory=dict)
    flags: int = 0
    memory: npt.NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, dtype=np.uint8))

    def run(self, words: Iterable[Word]) -> None:
        """Execute bundles one after another.

        Raises:
            ConstraintError: a fault; ``code`` is its kind. Nothing of the faulting bundle takes effect.
        """
        bundle: _Bundle | None = None
        for word in words:
            mnemonic = word.row.mnemonic
            if mnemonic.startswith("BSTART."):
                if bundle is not None:
                    raise fault(CONTROL, f"{mnemonic} inside a bundle that BSTOP has not closed.")
                bundle = _Bundle(word)
            elif bundle is None:
                raise fault(CONTROL, f"{mnemonic} outside a bundle.")
            elif mnemonic.endswith("BSTOP"):
                self._execute(bundle)
                bundle = None
            else:
                self._header(bundle, word)
        if bundle is not None:
            raise fault(CONTROL, "the last bundle has no BSTOP.")

    def register(self, code: int) -> int:
        """Return a register's value; ``zero`` is 0."""
        name = REGISTERS[code]
        return 0 if name == "zero" else self.registers.get(name, 0) % (1 << 64)

    def _header(self, bundle: _Bundle, word: Word) -> None:
        match word.row.mnemonic:
            case "B.DATR":
                if bundle.datr is not None:
                    raise fault(CONTROL, "a second B.DATR.")
                bundle.datr = word
            case "B.IOR":
                if bundle.ior is not None:
                    raise fault(CONTROL, "a second B.IOR.")
                bundle.ior = word
            case "B.DIM" | "C.B.DIMI":
                self._bound(bundle, word)
            case "B.IOT":
                if bundle.closed or len(bundle.bindings) == MOST_BINDINGS:
                    raise fault(CONTROL, "a B.IOT after the last one.")
                bundle.bindings.append(word)
                bundle.closed = bool(word.codes["L"])
            case mnemonic:
                raise fault(LEGALITY, f"{mnemonic} is not part of {bundle.name} here.")

    def _bound(self, bundle: _Bundle, word: Word) -> None:
        if word.row.mnemonic == "B.DIM":
            name = word.row.name[-3:]
            value = (self.register(word.codes["RegSrc"]) + word.codes["uimm17"]) & 0xFFFF
        else:
            name, value = word.name("LoopNest"), word.codes["imm8"]
        if name in bundle.bounds:
            raise fault(CONTROL, f"a second {name}.")
        bundle.bounds[name] = value

    def _execute(self, bundle: _Bundle) -> None:
        if bundle.bindings and all(word.codes["PEMode"] == 0 for word in bundle.bindings):
            return  # no PE takes part: nothing is checked and nothing happens
        name = bundle.name
        if len(bundle.bindings) != 1 or not bundle.closed:
            raise fault(LEGALITY, f"{name} takes exactly one terminating B.IOT; got {len(bundle.bindings)}.")
        match name:
            case "TDEQUANT" | "TQUANT":
                self._quantization(bundle, name)
            case "TCVT":
                self._conversion(bundle)
            case "TLOAD":
                self._load(bundle)
            case "TSTORE":
                self._store(bundle)
            case _:
                raise fault("Fault_IllegalInstruction", f"{name} is not emulated on the machine.")

    def _shape(self, bundle: _Bundle) -> tuple[int, int, int]:
        """Valid rows, valid columns, columns."""
        cols = bundle.bounds.get("LB0", 0)
        rows = bundle.bounds.get("LB1", 1)
        physical = bundle.bounds.get("LB2", cols)
        if not cols or not rows or physical < cols:
            raise fault(LEGALITY, f"LB0 = {cols}, LB1 = {rows}, LB2 = {physical} are no shape (LB0 is required).")
        return rows, cols, physical

    def _source(self, bundle: _Bundle, shape: tuple[int, int, int]) -> SpecTile:
        word = bundle.bindings[0]
        if word.row.name not in ("B.IOT.1>D", "B.IOT.1"):
            raise fault(LEGALITY, f"{bundle.name} takes one source; got {word.row.role}.")
        index = word.codes["SrcTile0"]
        found = self.tiles.get(index)
        if found is None:
            raise fault(LEGALITY, f"source tile {tile_name(index)} is not allocated.")
        kind = found.tile.type
        if kind.dtype != bundle.dtype:
            raise fault(LEGALITY, f"source {tile_name(index)} is {kind.dtype}, BSTART says {bundle.dtype}.")
        if (*kind.valid, kind.cols) != shape:
            raise fault(
                LEGALITY,
                f"source {tile_name(index)} is {kind.short}, the bounds say {shape[0]}x{shape[1]} of {shape[2]}.",
            )
        if not found.defined[: shape[0], : shape[1]].all():
            raise fault(LEGALITY, f"source {tile_name(index)} has undefined elements in its valid region.")
        return found

    def _destination(self, bundle: _Bundle, dtype: str, shape: tuple[int, int, int], layout: str = "ND") -> TileType:
        """Return the type of the new tile: its rows follow from the capacity."""
        word = bundle.bindings[0]
        if "DstTile" not in word.codes:
            raise fault(LEGALITY, f"{bundle.name} needs a destination.")
        capacity = 128 << (word.codes["SizeCode"] - 1)
        unit = TileType.of(dtype, (1, 1))
        rows = capacity * 8 // (shape[2] * unit.bits)
        if rows < shape[0]:
            raise fault(
                ALLOCATION,
                f"size code {word.codes['SizeCode']} ({capacity} B) holds {rows} rows of {shape[2]} {dtype}.",
            )
        return SpecTileType.of(dtype, (rows, shape[2]), (shape[0], shape[1]), layout=layout)

    def _slot(self, bundle: _Bundle) -> int:
        hand = bundle.bindings[0].codes["DstTile"]
        for slot in range(SLOTS):
            if hand * SLOTS + slot not in self.tiles:
                return hand * SLOTS + slot
        raise fault(ALLOCATION, f"hand {'TUMN'[hand]} has no free slot.")

    def _publish(self, bundle: _Bundle, kind: TileType, values: Array, pad: Pad | None) -> None:
        """Allocate the destination and write it: values, then padding; null padding is undefined."""
        index = self._slot(bundle)
        tile = Tile.empty(kind, check=False)  # its tiles have capacities, not the library's 32-byte rows
        if pad is not None:
            padded = SpecTileType.of(kind.dtype, kind.shape, layout=kind.layout, pad=pad)
            tile.write(np.full(kind.shape, pad_element(padded)))
        tile.store(values)
        self.tiles[index] = SpecTile.of(tile, everything=pad is not None)

    def _attributes(self, bundle: _Bundle, names: tuple[str, ...]) -> None:
        """Refuse attributes that do not apply: they must be 0."""
        assert bundle.datr is not None
        for name in names:
            if bundle.datr.codes[name]:
                raise fault(LEGALITY, f"{bundle.name}: B.DATR {name} does not apply and must be 0.")

    def _quantization(self, bundle: _Bundle, name: str) -> None:
        if bundle.datr is None:
            raise fault(LEGALITY, f"{name} needs B.DATR.")
        inapplicable = ("CMode", "PadValueOrByteId", "Canonicalize", "Layout")
        self._attributes(bundle, inapplicable if name == "TQUANT" else (*inapplicable, "Sat"))
        shape = self._shape(bundle)
        multiplier, zero_point = ONE, 0
        if bundle.ior is not None:
            if bundle.ior.codes["RegSrc2"] or bundle.ior.codes["RegDst"]:
                raise fault(LEGALITY, f"{name}: RegSrc2 and RegDst must be zero.")
            multiplier = self.register(bundle.ior.codes["RegSrc0"])
            zero_point = self.register(bundle.ior.codes["RegSrc1"])
        source = self._source(bundle, shape)
        kind = self._destination(bundle, _format(bundle.datr.codes["DataType"]), shape)
        make = TDequantScalar if name == "TDEQUANT" else TQuantScalar
        op = make(
            dst=str(kind),
            src=str(source.tile.type),
            multiplier=multiplier,
            zero_point=zero_point,
            rounding=bundle.datr.name("RMode"),
            saturate=bool(bundle.datr.codes["Sat"]),
        )
        result = self._perform(op, source)
        self._publish(bundle, kind, result["dst"], None)
        self.flags |= int(result["flags"])

    def _conversion(self, bundle: _Bundle) -> None:
        if bundle.ior is not None:
            raise fault(LEGALITY, "TCVT takes no B.IOR.")
        shape = self._shape(bundle)
        source = self._source(bundle, shape)
        dtype, rounding, saturate, pad, layout = bundle.dtype, "Default", False, 3, source.tile.type.layout
        if bundle.datr is not None:
            self._attributes(bundle, ("CMode", "Canonicalize"))
            code = bundle.datr.codes["DataType"]
            dtype = bundle.dtype if code not in DATA_TYPES else _format(code)
            rounding, saturate = bundle.datr.name("RMode"), bool(bundle.datr.codes["Sat"])
            pad = bundle.datr.codes["PadValueOrByteId"]
            layout = self._layout(bundle.datr.name("Layout"), layout)
        kind = self._destination(bundle, dtype, shape, layout)
        mode = {"Default": "rn", "RNE": "rn", "RTZ": "rz", "RTM": "rd", "RTP": "ru", "RNA": "rna", "RTO": "ro"}
        op = TCvt(dst=str(kind), src=str(source.tile.type), mode=mode.get(rounding, "RHB"), saturate=saturate)
        result = self._perform(op, source)
        self._publish(bundle, kind, result["dst"], _PADS[pad])
        self.flags |= int(result["flags"])

    @staticmethod
    def _layout(name: str, before: str) -> str:
        if name == "NORM":
            return before
        source, _, target = name.partition("2")
        if source != before or target not in _LAYOUTS:
            raise fault(LEGALITY, f"layout {name} of a source in {before}.")
        return target

    def _perform(self, op: Operation, source: SpecTile) -> dict[str, Array]:
        try:
            result: dict[str, Array] = execute(op, {"src": np.ascontiguousarray(source.tile.numpy())}, SPECIFICATION)
        except NarrowcastError as error:
            raise fault(LEGALITY, error.message) from None
        return result

    def _address(self, bundle: _Bundle, shape: tuple[int, int, int], bits: int) -> npt.NDArray[np.int64]:
        """Byte address of every valid row."""
        base, stride = 0, -(-shape[2] * bits // 8)
        if bundle.ior is not None:
            base, stride = (self.register(bundle.ior.codes[f"RegSrc{i}"]) for i in range(2))
        rows = base + np.arange(shape[0], dtype=np.int64) * stride
        width = -(-shape[1] * bits // 8)
        if rows.min() < 0 or rows.max() + width > self.memory.size:
            raise fault(
                "Fault_Memory", f"{shape[0]} rows of {width} B from {base:#x} leave the {self.memory.size} B of memory."
            )
        return rows[:, None] + np.arange(width)

    def _load(self, bundle: _Bundle) -> None:
        shape = self._shape(bundle)
        kind = self._destination(bundle, bundle.dtype, shape)
        raw = self.memory[self._address(bundle, shape, kind.bits)]
        self._publish(bundle, kind, _from_bytes(raw, kind, shape[1]), None)

    def _store(self, bundle: _Bundle) -> None:
        shape = self._shape(bundle)
        source = self._source(bundle, shape)
        where = self._address(bundle, shape, source.tile.type.bits)
        values = np.ascontiguousarray(source.tile.numpy())
        if source.tile.type.bits == 4:
            raise fault(LEGALITY, "4-bit stores are not emulated on the machine.")
        self.memory[where] = values.view(np.uint8).reshape(where.shape)


def _from_bytes(raw: Array, kind: TileType, cols: int) -> Array:
    if kind.bits == 4:
        return unpack(raw, kind.dtype, cols)
    return np.ascontiguousarray(raw).view(element_dtype(kind.format))
