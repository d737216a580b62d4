"""Closed sets."""

from enum import Enum


class Rounding(Enum):
    """What happens to a value between two neighbours. Each vendor's numbering is a column of its catalog row."""

    RN = "rn"
    RNA = "rna"
    RD = "rd"
    RU = "ru"
    RZ = "rz"
    RO = "ro"
    RH = "rh"


class Special(Enum):
    """Which codes of a floating-point format are not finite numbers."""

    IEEE = "ieee"  # all-ones exponent: infinity, and NaN with a non-zero fraction
    NAN_MAX = "nan-max"  # only the all-ones magnitude is NaN; no infinity
    NONE = "none"  # every code is a finite number


class Ties(Enum):
    """How ``rn`` settles an exact tie."""

    EVEN_CODE = "even-code"  # to the neighbour whose code ends in 0
    LARGER = "larger"  # a one-digit significand has no even neighbour: IEEE 754-2019 4.3.1


class Provenance(Enum):
    """How far a behaviour is backed by a public source."""

    DOCUMENTED = "documented"
    SIMULATED = "simulated"
    IMPLEMENTATION_DEFINED = "implementation-defined"
    ASSUMED = "assumed"


class Kind(Enum):
    """Family of a number format."""

    INTEGER = "integer"
    FLOAT = "float"
    TAPERED = "tapered"
    SCALE = "scale"
