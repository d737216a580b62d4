"""Cast one array file: read a piece, convert, write, so that its size does not matter."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from narrowcast.catalog.formats import formats
from narrowcast.errors import FormatError
from narrowcast.numerics import source_name
from narrowcast.operation import Audit, AuditEntry, CastOp, audit
from narrowcast.quant import Cast, decode
from narrowcast.schema import Format, Rounding
from narrowcast.storage import atomic_output
from narrowcast.storage.npy import NpyArray, open_npy, write_header
from narrowcast.version import VERSION

Array = npt.NDArray[Any]

CHUNK_ELEMENTS = 1 << 20
SIDECAR = ".json"
"""What is added to an array's file name for the file that says how to read its codes."""


@dataclass(frozen=True)
class CastFile:
    """What casting a file did.

    Attributes:
        source: the input file.
        output: the file of codes.
        sidecar: the file that says how to read them.
        shape: shape of both arrays.
        source_format: format of the input values.
        format: the target.
        rounding: the mode.
        saturate: whether overflow gave the largest finite value.
        nan_policy: ``keep``, ``zero`` or ``error``.
        dtype: NumPy type of the output.
        stored: ``values`` where NumPy has the format as a type of its own, else ``codes``.
        elements: how many there are.
        nans: NaN among the input.
        overflowed: values outside the target's range, infinities included.
        flushed: values that became zero.
        max_error: largest absolute error of values inside the range.
        audit: the audit, where one was asked for.
    """

    source: Path
    output: Path
    sidecar: Path
    shape: tuple[int, ...]
    source_format: str
    format: str
    rounding: str
    saturate: bool
    nan_policy: str
    dtype: str
    stored: str
    elements: int
    nans: int
    overflowed: int
    flushed: int
    max_error: float
    audit: Audit | None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "source": str(self.source),
            "output": str(self.output),
            "sidecar": str(self.sidecar),
            "shape": list(self.shape),
            "source_format": self.source_format,
            "format": self.format,
            "rounding": self.rounding,
            "saturate": self.saturate,
            "nan": self.nan_policy,
            "dtype": self.dtype,
            "stored": self.stored,
            "elements": self.elements,
            "nans": self.nans,
            "overflowed": self.overflowed,
            "flushed": self.flushed,
            "max_error": self.max_error,
            "audit": self.audit.to_json() if self.audit else None,
        }


@dataclass
class _Tally:
    nans: int = 0
    overflowed: int = 0
    flushed: int = 0
    max_error: float = 0.0

    def add(self, values: Array, results: Array, target: Format) -> None:
        before = values.astype(np.float64)
        after = results.astype(np.float64)
        nan = np.isnan(before)
        outside = ~nan & ((before > target.max) | (before < target.min))
        self.nans += int(nan.sum())
        self.overflowed += int(outside.sum())
        self.flushed += int(((before != 0) & ~nan & (after == 0)).sum())
        inside = ~nan & ~outside & np.isfinite(after)
        error = np.abs(np.subtract(after, before, where=inside, out=np.zeros_like(before)))
        self.max_error = max(self.max_error, float(error.max(initial=0.0)))


def cast_file(
    source: str | os.PathLike[str],
    output: str | os.PathLike[str],
    target: str,
    *,
    source_format: str | None = None,
    rounding: str | Rounding | None = None,
    saturate: bool = True,
    nan: str = "keep",
    audited: bool = False,
    force: bool = False,
    progress: Callable[[int], None] | None = None,
) -> CastFile:
    """Cast the array of a ``.npy`` file and write the codes as another one.

    NumPy's file format has no name for most narrow formats, so a second file, ``OUTPUT.json``, says which
    format the codes have. Formats that are NumPy types (fp16, fp32, s8, ...) are stored as such.

    Args:
        source: a ``.npy`` file.
        output: the file to write; it appears whole or not at all.
        target: format name or alias.
        source_format: what the elements are, where the file's own type does not say it: bf16 or the codes of
            a narrow format. Left out, a ``SOURCE.json`` beside the file is believed.
        rounding: mode, None for the target's default.
        saturate: whether overflow gives the largest finite value.
        nan: ``keep``, ``zero`` or ``error``.
        audited: whether to look which open questions touch the result.
        force: replace existing files.
        progress: called with the number of elements done, piece by piece.

    Returns:
        A :class:`CastFile`.

    Raises:
        CheckpointError: the input is damaged, truncated or no array of numbers.
        FormatError: elements of no known format; NaN that the target or the policy refuses.
        OutputError: an output exists, or cannot be written.
    """
    cast = Cast(None, target, rounding, saturate, nan)
    array = open_npy(source)
    origin = _origin(array, source_format)
    result_dtype = _result_dtype(cast.format)
    output = Path(output)
    sidecar = output.with_name(output.name + SIDECAR)
    tally = _Tally()
    audits: list[tuple[int, Audit]] = []
    # The array is the inner one: a disk that fills up while it is written is reported under its name.
    with atomic_output(sidecar, force) as note, atomic_output(output, force) as file:
        write_header(file, result_dtype, array.shape, array.fortran_order)
        done = 0
        for piece in array.chunks(CHUNK_ELEMENTS):
            values = _values(piece, origin)
            _refuse_nan(array, values, done, cast)
            codes = cast(values)
            file.write(codes.view(result_dtype).data)
            tally.add(values, decode(codes, cast.target), cast.format)
            if audited:
                operation = CastOp(target=cast.target, rounding=cast.mode.value, saturate=saturate, nan=nan)
                audits.append((done, audit(operation, values)))
            done += len(piece)
            if progress is not None:
                progress(len(piece))
        result = CastFile(
            source=Path(source),
            output=output,
            sidecar=sidecar,
            shape=array.shape,
            source_format=origin if isinstance(origin, str) else origin.name,
            format=cast.target,
            rounding=cast.mode.value,
            saturate=saturate,
            nan_policy=nan,
            dtype=result_dtype.name,
            stored="codes" if result_dtype.name == cast.format.code_dtype and not _is_numpy(cast.format) else "values",
            elements=array.elements,
            nans=tally.nans,
            overflowed=tally.overflowed,
            flushed=tally.flushed,
            max_error=tally.max_error,
            audit=_merge(audits, array) if audited else None,
        )
        note.write(_note(result, cast).encode())
        note.flush()
    return result


def _origin(array: NpyArray, asked: str | None) -> str | Format:
    """What the elements are: a format row to view or decode them by, or the name of the array's own type."""
    if asked is None:
        asked = _sidecar_format(array)
    own = source_name(array.dtype.newbyteorder("="))
    if asked is None:
        if own is None:
            hint = "Convert it to a float or integer array."
            if array.dtype.kind == "V":
                hint = "Name the format of the elements: --from bf16, or --from with the format of the codes."
            raise FormatError(f"{array.path} holds {array.dtype.name}, which is no source of a cast.", hint=hint)
        return own
    row = formats[asked]
    if own == row.name:
        return own
    if array.dtype.kind not in "uV" or array.dtype.itemsize * 8 != row.code_bits:
        raise FormatError(
            f"{array.path} holds {array.dtype.name}; {row.name} codes are {row.code_dtype}.",
            hint="Leave --from out for an array of numbers.",
        )
    return row


def _sidecar_format(array: NpyArray) -> str | None:
    note = array.path.with_name(array.path.name + SIDECAR)
    if array.dtype.kind != "u" or not note.is_file():
        return None
    try:
        form = json.loads(note.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(form, dict) or form.get("stored") != "codes" or form.get("format") not in formats:
        return None
    return str(form["format"])


def _values(piece: Array, origin: str | Format) -> Array:
    if isinstance(origin, str):
        return piece
    codes = piece.view(origin.code_dtype)
    if origin.name == "bf16":
        import ml_dtypes

        return codes.view(ml_dtypes.bfloat16)
    return codes.view(_result_dtype(origin)) if _is_numpy(origin) else decode(codes, origin.name)


def _is_numpy(row: Format) -> bool:
    """Whether NumPy itself has the format as an array type."""
    return row.name in ("fp16", "fp32") or (row.is_integer and row.bits >= 8)


def _result_dtype(row: Format) -> np.dtype[Any]:
    return np.dtype(row.ml_dtype if _is_numpy(row) else row.code_dtype)


def _refuse_nan(array: NpyArray, values: Array, done: int, cast: Cast) -> None:
    """Refuse NaN here, where the element's index is known."""
    if values.dtype.kind in "iu" or cast.nan == "zero" or (cast.nan == "keep" and cast.format.nan_code is not None):
        return
    lanes = np.isnan(values)
    if lanes.any():
        index = ", ".join(map(str, array.index(done + int(np.argmax(lanes)))))
        why = f"{cast.target} has no NaN" if cast.format.nan_code is None else "the policy is error"
        raise FormatError(
            f"{array.path} has NaN, first at [{index}]: {why}.",
            hint='Choose --nan zero (nan="zero") to encode NaN as 0, or remove it.',
            source=cast.format.source,
        )


def _merge(audits: list[tuple[int, Audit]], array: NpyArray) -> Audit:
    """Add up the audits of the pieces; the first index becomes one of the whole array."""
    found: dict[tuple[str, str], AuditEntry] = {}
    for done, part in audits:
        for entry in part.entries:
            key = (entry.switch, entry.alternative)
            if key in found:
                found[key] = replace(found[key], changed=found[key].changed + entry.changed)
            else:
                index = array.index(done + entry.first_index[0])
                found[key] = replace(entry, first_index=index, total=array.elements)
    first = audits[0][1] if audits else Audit("CastOp", (), ())
    return replace(first, entries=tuple(found.values()))


def _note(result: CastFile, cast: Cast) -> str:
    form = {
        "format": result.format,
        "stored": result.stored,
        "dtype": result.dtype,
        "shape": list(result.shape),
        "rounding": result.rounding,
        "saturate": result.saturate,
        "nan": result.nan_policy,
        "source_format": result.source_format,
        "hybrid_compare": cast.hybrid_compare if cast.mode is Rounding.RH else None,
        "overflow": cast.overflow,
        "narrowcast": VERSION,
    }
    return json.dumps(form, indent=2) + "\n"
