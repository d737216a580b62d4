"""Words for tiles: roles, orders, padding values, layouts, and how PTO-AS spells them and element types."""

from enum import Enum
from typing import Any

from narrowcast.catalog.formats import formats
from narrowcast.errors import EncodingError, UnknownNameError, unknown_name


class Role(Enum):
    """Which buffer a tile lives in."""

    VEC = "vec"
    MAT = "mat"
    LEFT = "left"
    RIGHT = "right"
    ACC = "acc"
    BIAS = "bias"
    SCALING = "scaling"
    SCALE_LEFT = "scale_left"
    SCALE_RIGHT = "scale_right"


class Order(Enum):
    """Which index runs fastest, of elements in a box and of boxes in a tile; ``NONE``: no boxes."""

    NONE = "none"
    ROW = "row"
    COL = "col"


class Pad(Enum):
    """What TLOAD puts outside the valid region."""

    NULL = "null"
    ZERO = "zero"
    MAX = "max"
    MIN = "min"


_PADS = (Pad.NULL, Pad.ZERO, Pad.MAX, Pad.MIN)  # in the order of the library's numbers
CUSTOM_PAD = 1 << 32
"""A padding value from here on is an element's own bits, in its low 32."""


def read_pad(value: "str | int | Pad") -> Pad | int:
    """Return a padding value: a member by name or number, or a pattern as the library writes it, 2**32 and up."""
    if isinstance(value, Pad):
        return value
    text = str(value).strip()
    try:
        number = int(text, 0)
    except ValueError:
        return _named_pad(text)
    if 0 <= number < len(_PADS):
        return _PADS[number]
    if CUSTOM_PAD <= number < 2 * CUSTOM_PAD:
        return number
    raise EncodingError(
        f"padding value {value} is neither 0..{len(_PADS) - 1} nor 2**32 plus the bits of an element.",
        hint="Write e.g. 0x13F800000 for fp32 1.0.",
        source="pto-isa:PadValue",
    )


def _named_pad(text: str) -> Pad:
    found: Pad = member(Pad, text, "padding value")
    return found


def write_pad(pad: Pad | int) -> str:
    """Spell a padding value as PTO-AS does."""
    return pad.value.capitalize() if isinstance(pad, Pad) else f"{pad:#011x}"


LAYOUTS: dict[str, tuple[Order, Order]] = {
    "ND": (Order.ROW, Order.NONE),
    "DN": (Order.COL, Order.NONE),
    "NZ": (Order.COL, Order.ROW),
    "ZN": (Order.ROW, Order.COL),
    "ZZ": (Order.ROW, Order.ROW),
    "NN": (Order.COL, Order.COL),
}
"""Short layout name to (order of blocks, order inside a box)."""

BLOCK_TEXT = {Order.ROW: "RowMajor", Order.COL: "ColMajor"}
BOX_TEXT = {Order.NONE: "NoneBox", Order.ROW: "RowMajor", Order.COL: "ColMajor"}
_TEXT_DTYPE = {"fp32": "f32", "fp16": "f16", "s8": "i8", "s16": "i16", "s32": "i32", "s64": "i64", "s4": "i4"}
_DTYPE_TEXT = {**{v: k for k, v in _TEXT_DTYPE.items()}, **{f"ui{b}": f"u{b}" for b in (4, 8, 16, 32)}}


def member(kind: type[Any], name: str, what: str) -> Any:
    """Return the member of a closed set by its name, or its value."""
    for member in kind:
        if name.lower().replace("_", "") == member.value.replace("_", ""):
            return member
    raise unknown_name(what, name, [m.value for m in kind])


def write_dtype(name: str) -> str:
    """Spell a format as PTO-AS does: f32, i8, u8, bf16, ..."""
    return _TEXT_DTYPE.get(name, name)


def read_dtype(text: str) -> str:
    """Return the format a PTO-AS element type names."""
    try:
        return formats[_DTYPE_TEXT.get(text.lower(), text)].name
    except UnknownNameError as error:
        raise EncodingError(error.message, hint=error.hint) from None


def order(text: str) -> Order:
    """Return the order a PTO-AS layout name means."""
    name = text.lower().replace("_", "")
    known = {"rowmajor": Order.ROW, "colmajor": Order.COL, "nonebox": Order.NONE}
    if name not in known:
        raise unknown_name("layout", text, ("RowMajor", "ColMajor", "NoneBox"))
    return known[name]
