"""How the control bits, the instruction and the pair of types decide overflow, infinity and NaN."""

from dataclasses import dataclass

from narrowcast.catalog.casts import CastRow, Saturation
from narrowcast.operation import Choices, Control

KEEPS_NAN_BY_CTRL50 = ("e8m0", "e5m2", "e4m3")


@dataclass(frozen=True)
class Policy:
    """What to do with values the target cannot hold."""

    saturate: bool
    nan: str


def policy(row: CastRow, instruction: bool, choices: Choices, control: Control) -> Policy:
    """Decide saturation and NaN handling of a conversion.

    A saturating conversion turns NaN into 0, except that CTRL[50] = 1 keeps it in the 8-bit formats that have
    one. Integers turn NaN into 0 in both cases, and infinity into their limit.

    Args:
        row: the conversion.
        instruction: the instruction's own choice, heeded where CTRL[60] = 0.
        choices: the semantics.
        control: the program's control bits.
    """
    saturates = _saturates(row, instruction, choices, control)
    if row.saturation is Saturation.INTEGER:
        return Policy(saturates, "zero")
    if row.target in ("e2m1", "e1m2") or (row.saturation is Saturation.ALWAYS and row.target == "u32"):
        return Policy(True, "zero")
    keeps = not saturates or (control.ctrl50 == 1 and row.target in KEEPS_NAN_BY_CTRL50)
    return Policy(saturates, "keep" if keeps else "zero")


def _saturates(row: CastRow, instruction: bool, choices: Choices, control: Control) -> bool:
    global_bits = row.chip != "3510"  # chip 2201 has no CTRL[60]: the global bits always decide
    match row.saturation:
        case Saturation.EXACT | Saturation.NEVER:
            return False
        case Saturation.ALWAYS:
            return True
        case Saturation.CTRL48:
            if choices.choose("half_bf16_special") == "keep":
                return False
            return control.ctrl48 == 0
        case Saturation.FLOAT:
            return control.ctrl48 == 0 if global_bits else control.float_saturates(instruction)
        case Saturation.INTEGER:
            if not global_bits:
                return control.integer_saturates(instruction)
            return choices.choose("integer_saturation_2201") == "always" or control.ctrl59 == 0
