"""Write tile programs as PTO-AS text."""

from narrowcast.isa.program import Form, Statement, TileProgram


def write(program: TileProgram, form: Form | None = None) -> str:
    """Write a program, each statement in the form it was read in, or all in one.

    Args:
        program: the program.
        form: SSA, DPS, or None for each statement's own.

    Example:
        >>> from narrowcast.isa.text import parse
        >>> text = "%d = pto.tmov %s : !pto.tile<f32, 2, 8> -> !pto.tile<f32, 2, 8>"
        >>> parse(write(parse(text), Form.DPS)) == parse(text)
        True
    """
    return "".join(f"{_write(statement, form or statement.form)}\n" for statement in program.statements)


def _write(statement: Statement, form: Form) -> str:
    label = f"{statement.label}: " if statement.label else ""
    sources = ", ".join(map(str, statement.sources))
    results = ", ".join(map(str, statement.results))
    types = ", ".join(map(str, statement.source_types))
    result_types = ", ".join(map(str, statement.result_types))
    attributes = _write_attributes(statement)
    if form is Form.DPS:
        buffers = [t.replace("!pto.tile<", "!pto.tile_buf<") for t in (types, result_types)]
        inside = f"{sources}{attributes}{' : ' + buffers[0] if types else ''}"
        return f"{label}pto.{statement.op} ins({inside}) outs({results}{' : ' + buffers[1] if result_types else ''})"
    if form is Form.PLAIN:
        marks = "".join(f" #{key}={value}" for key, value in statement.attributes.items())
        if statement.stores:
            every = ", ".join(filter(None, (types, result_types)))
            return f"{label}{statement.op} {sources}, {results}{' : (' + every + ')' if every else ''}{marks}"
        every = ", ".join(filter(None, (result_types, types)))
        return f"{label}{statement.op} {results}, {sources}{' : ' + every if every else ''}{marks}"
    if statement.stores:
        every = ", ".join(filter(None, (types, result_types)))
        return f"{label}pto.{statement.op} {sources}, {results}{attributes} : ({every}) -> ()"
    listed = f"({types})" if len(statement.source_types) > 1 else types
    return f"{label}{results} = pto.{statement.op} {sources}{attributes} : {listed or '()'} -> {result_types}"


def _write_attributes(statement: Statement) -> str:
    if not statement.attributes:
        return ""
    parts = [
        f"{key} = #pto<round_mode {value}>" if key == "rmode" else f"{key} = {value}"
        for key, value in statement.attributes.items()
    ]
    return f" {{{', '.join(parts)}}}"
