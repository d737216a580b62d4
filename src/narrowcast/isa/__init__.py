"""Bundle words and PTO-AS text of the tile instructions, both directions from the catalog's fields."""

from narrowcast.isa.fields import Word, decode, encode

__all__ = ["Word", "decode", "encode"]
