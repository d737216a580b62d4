"""Which conversions a chip has, and how to say that it has not."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from narrowcast.catalog import casts
from narrowcast.catalog.casts import CastRow
from narrowcast.catalog.rounding import rounding as resolve_rounding
from narrowcast.errors import UnsupportedCastError
from narrowcast.operation import Finding
from narrowcast.schema import Rounding

NONE = "none"
_NONE_NAMES = ("none", "cast_none", "")
_CALLED = {"basic": "vector cast", "reg": "register cast", "c-api": "C-API function"}
_UNLISTED = "asc-devkit:Memory Cast"

Choose = Callable[[str], str]


@dataclass(frozen=True)
class Refusal:
    """Why a conversion is not legal, what is, and who says so."""

    message: str
    hint: str
    source: str

    def error(self) -> UnsupportedCastError:
        """The exception form."""
        return UnsupportedCastError(self.message, hint=self.hint, source=self.source)

    def finding(self, place: str) -> Finding:
        """The report form."""
        return Finding(rule="VEC-01", place=place, message=self.message, fix=self.hint, source=self.source)


def mode_name(mode: str | Rounding | None) -> str | None:
    """Return a mode's short name; None means the conversion's default."""
    if mode is None:
        return None
    if isinstance(mode, str) and mode.lower() in _NONE_NAMES:
        return NONE
    return resolve_rounding(mode).value


@cache
def default_mode(interface: str, source: str, target: str) -> str:
    """Return the mode of a conversion when none is named: the only one, or the first of rn and rna it has."""
    found = casts.rows(interface=interface, source=source, target=target)
    modes = found[0].modes if found else ()
    return next((m for m in ("rn", "rna") if m in modes), modes[0] if modes else "rn")


def legal(interface: str, chip: str, source: str, target: str, mode: str, choose: Choose) -> CastRow | Refusal:
    """Return the conversion's row, or why there is none.

    Args:
        interface: ``basic``, ``reg`` or ``c-api``.
        chip: the chip.
        source: format name, or one of the catalog's unemulated names.
        target: likewise.
        mode: short mode name.
        choose: answers the switch ``cast_none`` where a row depends on it.
    """
    row = casts.find(interface, chip, source, target)
    if row is None:
        return _no_pair(interface, chip, source, target)
    if not row.emulated:
        return Refusal(
            f"{source} -> {target} exists on chip {chip} but is not emulated "
            f"(no operation on {', '.join(casts.UNEMULATED)} is).",
            "Use NumPy for it.",
            row.reference,
        )
    if mode in row.modes or (mode in row.also_accepts and choose("cast_none") == "rint"):
        return row
    return _no_mode(row, mode)


def require(interface: str, chip: str, source: str, target: str, mode: str, choose: Choose) -> CastRow:
    """Return the conversion's row.

    Raises:
        UnsupportedCastError: the pair, mode or chip has none; the message says what is legal.
    """
    found = legal(interface, chip, source, target, mode, choose)
    if isinstance(found, Refusal):
        raise found.error()
    return found


def _no_mode(row: CastRow, mode: str) -> Refusal:
    what = "no CAST_NONE" if mode == NONE else f"no rounding mode {mode}"
    exact = row.modes == (NONE,)
    allowed = "none: it does not round" if exact else ", ".join(row.modes)
    if exact:
        use = "Use CAST_NONE"
    else:
        use = f"Use {row.modes[0] if len(row.modes) == 1 else 'one of them'}"
    hint = f"{use}." if mode == NONE or exact else f'{use}, or encode(..., rounding="{mode}") off-device.'
    if mode in row.also_accepts:
        hint = 'Use rn, or semantics.override(cast_none="rint"): the implementation takes it.'
    return Refusal(
        f"{row.source} -> {row.target} has {what} on chip {row.chip} (allowed: {allowed}).", hint, row.reference
    )


def _no_pair(interface: str, chip: str, source: str, target: str) -> Refusal:
    elsewhere = casts.rows(interface=interface, source=source, target=target)
    targets = [row.target for row in casts.rows(interface=interface, chip=chip, source=source)]
    message = f"{source} -> {target} is no {_CALLED[interface]} of chip {chip}"
    if targets:
        message += f" (from {source}: {', '.join(targets)})"
    elif not casts.rows(interface=interface, chip=chip):
        chips = dict.fromkeys(row.chip for row in casts.rows(interface=interface))
        message += f" (it has no conversions on record; chips that have: {', '.join(chips)})"
    else:
        message += f" (nothing converts from {source} there)"
    if elsewhere:
        hint = f"On record for chip {' and '.join(row.chip for row in elsewhere)}: choose Semantics(chip=...)."
    elif interface == "basic" and casts.find("reg", chip, source, target):
        hint = "The register form has it: narrowcast.vector.reg_cast."
    else:
        hint = f'Go through another type, or use encode(..., "{target}") off-device.'
    return Refusal(message + ".", hint, elsewhere[0].reference if elsewhere else _UNLISTED)
