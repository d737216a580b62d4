"""PTO-AS text: SSA (``%d = pto.op %a : T -> T``), DPS (``pto.op ins(..) outs(..)``) and plain (``op %d, %a : T``)."""

import re
from types import MappingProxyType

from narrowcast.errors import NarrowcastError, unknown_name
from narrowcast.isa.bundle import at
from narrowcast.isa.program import Form, MemoryType, Operand, Statement, TileProgram, Type
from narrowcast.isa.tokens import Token, error, tokens
from narrowcast.tile.types import TileType

OPERATIONS: dict[str, tuple[int, int]] = {
    "tload": (1, 1),
    "tstore": (1, 1),
    "tmov": (1, 1),
    "tdequant": (3, 3),
    "tquant": (2, 3),
    "tcvt": (1, 1),
}
"""Fewest and most source operands of each operation; each has one result."""

ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "tload": (),
    "tstore": ("atomic",),
    "tmov": ("axis",),
    "tdequant": (),
    "tquant": ("parameter",),
    "tcvt": ("rmode", "sat"),
}


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens = list(tokens(text))
        self.position = 0

    @property
    def next(self) -> Token:
        return self.tokens[self.position]

    def take(self) -> Token:
        token = self.next
        self.position += token.kind != "end"
        return token

    def accept(self, text: str) -> bool:
        if self.next.text != text or self.next.kind == "end":
            return False
        self.take()
        return True

    def expect(self, text: str, where: str) -> Token:
        if self.next.text != text or self.next.kind == "end":
            raise error(f"expected {text!r} {where}, got {self.next.text!r}.", self.next.line, self.next.column)
        return self.take()

    def program(self) -> TileProgram:
        statements = []
        while self.next.kind != "end":
            statements.append(self.statement())
        return TileProgram(tuple(statements))

    def statement(self) -> Statement:
        first = self.next
        label = ""
        if first.kind == "name" and self.tokens[self.position + 1].text == ":":
            label = self.take().text
            self.take()
        if self.next.kind == "value":
            return self._ssa(label)
        op = self._operation()
        if self.next.text == "ins":
            return self._dps(op, first, label)
        return self._bare(op, first, label)

    def _operation(self) -> str:
        token = self.take()
        name = token.text.lower().removeprefix("pto.")
        name = name.split(".")[0] if name.startswith("tmov.") else name  # tmov.v2v names where it moves
        if token.kind != "name" or name not in OPERATIONS:
            unknown = unknown_name("tile operation", token.text, OPERATIONS)
            raise error(unknown.message, token.line, token.column, unknown.hint)
        return name

    def _ssa(self, label: str) -> Statement:
        first = self.next
        results = [self._operand()]
        self.expect("=", "after the result")
        op = self._operation()
        sources = self._operands()
        attributes = self._attributes(op)
        self.expect(":", "before the types")
        types = self._types()
        result_types: list[Type] = []
        if self.next.kind == "arrow":
            self.take()
            result_types = self._types()
        else:
            result_types = [types.pop()] if types else []
        return self._make(op, first, label, Form.SSA, sources, results, types, result_types, attributes)

    def _bare(self, op: str, first: Token, label: str) -> Statement:
        """``pto.tstore %t, %m : (T, M) -> ()``, or the plain form, whose result comes first."""
        operands = self._operands()
        attributes = self._attributes(op)
        types = self._types() if self.accept(":") else []
        result_types: list[Type] = []
        arrow = self.next.kind == "arrow"
        if arrow:
            self.take()
            result_types = self._types()
        attributes |= self._marks(op)
        if op == "tstore":
            if not operands:
                raise error(f"{op} takes 1 source and a memory; got 0 operands.", first.line, first.column)
            sources, results = operands[:-1], operands[-1:]
            if types and len(types) == len(operands):
                result_types = [types.pop()]
            form = Form.SSA if arrow else Form.PLAIN
            return self._make(op, first, label, form, sources, results, types, result_types, attributes)
        if not operands:
            raise error(f"{op} without operands.", first.line, first.column)
        results, sources = operands[:1], operands[1:]
        if not result_types and types:
            result_types, types = types[:1], types[1:]
        elif len(types) == len(operands):
            types = types[1:]
        return self._make(op, first, label, Form.PLAIN, sources, results, types, result_types, attributes)

    def _dps(self, op: str, first: Token, label: str) -> Statement:
        self.expect("ins", "")
        sources, types, attributes = self._items(op)
        self.expect("outs", "after ins(...)")
        results, result_types, more = self._items(op)
        return self._make(op, first, label, Form.DPS, sources, results, types, result_types, attributes | more)

    def _items(self, op: str) -> tuple[list[Operand], list[Type], dict[str, str]]:
        """``(%a, %b : T, T)`` or ``(%a : T, %b : T)``."""
        self.expect("(", "")
        operands: list[Operand] = []
        types: list[Type] = []
        attributes: dict[str, str] = {}
        while not self.accept(")"):
            if self.next.kind == "value":
                operands.append(self._operand())
            elif self.next.text == "{":
                attributes |= self._attributes(op)
                continue
            elif self.next.text == ":":
                self.take()
                types.append(self._type())
                while len(types) < len(operands) and self.next.text == ",":
                    self.take()
                    types.append(self._type())
            else:
                raise error(f"unexpected {self.next.text!r}.", self.next.line, self.next.column)
            if self.next.text == ",":
                self.take()
        return operands, types, attributes

    def _operands(self) -> list[Operand]:
        operands = []
        while self.next.kind == "value":
            operands.append(self._operand())
            if not self.accept(","):
                break
        return operands

    def _operand(self) -> Operand:
        token = self.take()
        if token.kind != "value":
            raise error(f"expected a value such as %x, got {token.text!r}.", token.line, token.column)
        offsets = []
        if self.accept("["):
            while not self.accept("]"):
                number = self.take()
                if number.kind != "number" or not number.text.isdigit():
                    raise error(f"an offset is a whole number; got {number.text!r}.", number.line, number.column)
                offsets.append(int(number.text))
                self.accept(",")
        return Operand(token.text[1:], tuple(offsets), token.column)

    def _types(self) -> list[Type]:
        if not self.accept("("):
            types = [self._type()]
            while self.next.text == "," and self.tokens[self.position + 1].kind == "type":
                self.take()
                types.append(self._type())
            return types
        types = []
        while not self.accept(")"):
            if self.next.text == "index":
                self.take()
            else:
                types.append(self._type())
            self.accept(",")
        return types

    def _type(self) -> Type:
        token = self.take()
        if token.kind != "type":
            raise error(f"expected a type such as !pto.tile<...>, got {token.text!r}.", token.line, token.column)
        try:
            if re.match(r"!\s*pto\.tile(_buf)?\s*<", token.text):
                return TileType.parse(token.text)
            return MemoryType.parse(token.text)
        except NarrowcastError as problem:
            raise at(problem, token.line, token.column) from None

    def _attributes(self, op: str) -> dict[str, str]:
        found: dict[str, str] = {}
        if not self.accept("{"):
            return found
        while not self.accept("}"):
            key = self.take()
            if key.kind != "name":
                raise error(f"expected an attribute, got {key.text!r}.", key.line, key.column)
            self._check_attribute(op, key.text, key)
            value = "true"
            if self.accept("="):
                token = self.take()
                if token.kind not in ("name", "number", "string", "enum"):
                    raise error(f"expected a value for {key.text}, got {token.text!r}.", token.line, token.column)
                value = _plain(token.text)
            found[key.text] = value
            self.accept(",")
        return found

    def _marks(self, op: str) -> dict[str, str]:
        """``#key=value`` at the end of a plain statement."""
        found = {}
        while self.next.kind == "attribute":
            token = self.take()
            key, _, value = token.text[1:].partition("=")
            self._check_attribute(op, key.strip(), token)
            found[key.strip()] = value.strip()
        return found

    @staticmethod
    def _check_attribute(op: str, key: str, token: Token) -> None:
        if key not in ATTRIBUTES[op]:
            unknown = unknown_name(f"attribute of {op}", key, ATTRIBUTES[op] or ("none",))
            raise error(unknown.message, token.line, token.column, unknown.hint)

    def _make(
        self,
        op: str,
        first: Token,
        label: str,
        form: Form,
        sources: list[Operand],
        results: list[Operand],
        types: list[Type],
        result_types: list[Type],
        attributes: dict[str, str],
    ) -> Statement:
        low, high = OPERATIONS[op]
        if not low <= len(sources) <= high or len(results) != 1:
            takes = f"{low}" if low == high else f"{low} or {high}"
            raise error(
                f"{op} takes {takes} source{'s' * (high > 1)} and 1 result; got {len(sources)} and {len(results)}.",
                first.line,
                first.column,
            )
        if types and len(types) != len(sources):
            raise error(f"{op}: {len(sources)} sources and {len(types)} source types.", first.line, first.column)
        if not result_types and form is not Form.PLAIN:
            raise error(f"{op}: the result has no type.", first.line, first.column)
        return Statement(
            op,
            tuple(sources),
            tuple(results),
            tuple(types),
            tuple(result_types),
            MappingProxyType(attributes),
            form,
            label,
            first.line,
            first.column,
        )


def _plain(text: str) -> str:
    """``#pto<round_mode CAST_RINT>``, ``#pto.round_mode<CAST_RINT>``, ``"add"`` to the bare value."""
    if text.startswith("#"):
        return text[text.index("<") + 1 : -1].split()[-1]
    return text.strip('"')


def parse(text: str) -> TileProgram:
    """Read PTO-AS text in any of its three forms, mixed as they come.

    Args:
        text: statements; ``//`` comments, and lines that begin with ``#``.

    Returns:
        The program.

    Raises:
        EncodingError: with line and column.

    Source: pto-isa:PTO-AS, assembly-model.

    Example:
        >>> program = parse("%t = pto.tload %s : !pto.partition_tensor_view<4x32xi8> -> !pto.tile<i8, 4, 32>")
        >>> program.inputs
        ('s',)
    """
    return _Parser(text).program()
