"""Row types and closed sets of the catalog.

A row states the few facts that define a thing; everything else is derived here from those facts, with
Python arithmetic only, so that reading the catalog never loads NumPy.
"""

from narrowcast.schema.formats import (
    Binade,
    FloatFormat,
    Format,
    IntFormat,
    Magnitudes,
    ScaleFormat,
    TaperedFormat,
)
from narrowcast.schema.rows import Claim, RoundingRow, SwitchRow
from narrowcast.schema.sets import Kind, Provenance, Rounding, Special, Ties

__all__ = [
    "Binade",
    "Claim",
    "FloatFormat",
    "Format",
    "IntFormat",
    "Kind",
    "Magnitudes",
    "Provenance",
    "Rounding",
    "RoundingRow",
    "ScaleFormat",
    "Special",
    "SwitchRow",
    "TaperedFormat",
    "Ties",
]
