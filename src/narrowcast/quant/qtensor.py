"""A quantized tensor: codes, scales, and the record of how they were made."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

import ml_dtypes
import numpy as np
import numpy.typing as npt

from narrowcast import storage
from narrowcast.catalog.formats import formats
from narrowcast.errors import CheckpointError, FormatError, ShapeError
from narrowcast.quant.arrays import Array, as_codes, check_out
from narrowcast.quant.blocks import Blocks
from narrowcast.quant.cast import decode
from narrowcast.quant.packing import pack, unpack
from narrowcast.schema import IntFormat
from narrowcast.version import VERSION

_METADATA_KEY = "narrowcast"


@dataclass(frozen=True)
class Record:
    """How codes were made: every choice that decides bits."""

    rule: str
    rounding: str
    saturate: bool
    nonfinite: str = "error"
    scale_from: str = "given"
    denominator: float | None = None
    padded: int = 0
    version: str = VERSION
    semantics: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {**asdict(self), "semantics": dict(self.semantics)}

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> Self:
        """Build from the JSON form."""
        return cls(**form)


@dataclass(frozen=True, eq=False)
class QTensor:
    """Codes with their scales: ``real = (code - offset) * scale`` over blocks.

    Args:
        codes: unsigned integers, one per element, unpacked.
        format: format name of the codes.
        scale: one value per block, shape ``blocks.grid(codes.shape)``: float32, or E8M0 codes (uint8).
        offset: integers per block in the value domain of the format, or None.
        blocks: which elements share a scale.
        record: how the codes were made.
        scale_format: ``fp32`` or ``e8m0``; under E8M0 scales an s8 code counts 1/64, as OCP's MXINT8 has it.
    """

    codes: Array
    format: str
    scale: Array
    offset: Array | None
    blocks: Blocks
    record: Record
    scale_format: str = "fp32"

    def __post_init__(self) -> None:
        row = formats[self.format]
        object.__setattr__(self, "format", row.name)
        object.__setattr__(self, "codes", as_codes(self.codes, row))
        grid = self.blocks.grid(self.codes.shape)
        for name, array in (("scale", self.scale), ("offset", self.offset)):
            if array is not None and np.shape(array) != grid:
                raise ShapeError(
                    f"{name} has shape {np.shape(array)}; blocks {self.blocks.shape} of codes {self.codes.shape} "
                    f"need {grid}."
                )

    def __repr__(self) -> str:
        offset = "" if self.offset is None else ", with offsets"
        return (
            f"QTensor({self.format}, shape {self.codes.shape}, {self.scale.size} {self.scale_format} scales "
            f"over blocks {self.blocks.shape}{offset}, {self.record.rule}, rounding {self.record.rounding})"
        )

    def arrays(self) -> dict[str, Array]:
        """Name the arrays: codes, scale and, where there is one, offset."""
        named = {"codes": self.codes, "scale": self.scale}
        return named if self.offset is None else {**named, "offset": self.offset}

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the codes."""
        return self.codes.shape

    @property
    def scale_values(self) -> Array:
        """What a code is multiplied by, as float32."""
        return self.scale if self.scale_format == "fp32" else block_scales(self.scale, self.format)

    def dequantize(self, out: Array | None = None) -> Array:
        """Return ``(code - offset) * scale`` as float32: subtract, then multiply, each rounded once.

        Args:
            out: float32 array for the result.

        Returns:
            float32 array of the codes' shape.
        """
        check_out(out, self.shape, "float32")
        result = np.empty(self.shape, dtype=np.float32) if out is None else out
        scale = self.scale_values
        for elements, blocks in self.blocks.slabs(self.shape):
            real = decode(self.codes[elements], self.format).astype(np.float32, copy=False)
            if self.offset is not None:
                real = real - self.blocks.expand(self.offset[blocks].astype(np.float32), real.shape)
            with np.errstate(over="ignore", under="ignore", invalid="ignore"):
                np.multiply(real, self.blocks.expand(scale[blocks], real.shape), out=result[elements])
        return result

    def to_ml_dtypes(self) -> Array:
        """Return the codes as an ml_dtypes or NumPy array of the same bits.

        Raises:
            FormatError: a format neither library has (hif8, e1m2, fp19).
        """
        row = formats[self.format]
        if row.ml_dtype is None:
            raise FormatError(
                f"ml_dtypes has no {row.name} type.", hint="Use .codes, or .dequantize() for float32 values."
            )
        dtype = np.dtype(getattr(ml_dtypes, row.ml_dtype, None) or row.ml_dtype)
        return self.codes.view(dtype)

    def save(self, path: str | Path, force: bool = False) -> None:
        """Write a safetensors file with codes, scale, offset, and format and record in its metadata.

        Args:
            path: the file; refused when it exists unless ``force``.
            force: replace an existing file.

        Raises:
            OutputError: the file exists, or cannot be written; nothing is left half-written.
        """
        row = formats[self.format]
        codes = pack(self.codes.reshape(-1), self.format) if row.packs else self.codes
        tensors: dict[str, Any] = {"codes": codes.view(self.to_ml_dtypes().dtype) if _self_describing(self) else codes}
        tensors["scale"] = self.scale
        if self.offset is not None:
            tensors["offset"] = self.offset
        form = {
            "format": self.format,
            "shape": list(self.shape),
            "blocks": list(self.blocks.shape),
            "scale_format": self.scale_format,
            "record": self.record.to_json(),
        }
        storage.save_tensors(path, tensors, {_METADATA_KEY: json.dumps(form)}, force=force)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file written by :meth:`save`.

        Raises:
            CheckpointError: not a safetensors file, or not a saved QTensor.
        """
        with storage.open_safetensors(path) as file:
            if _METADATA_KEY not in file.metadata or "codes" not in file.names or "scale" not in file.names:
                raise CheckpointError(
                    f"{path} is no saved QTensor (it needs tensors codes and scale and metadata {_METADATA_KEY!r}).",
                    hint="Write one with QTensor.save.",
                )
            form = json.loads(file.metadata[_METADATA_KEY])
            row = formats[form["format"]]
            shape = tuple(form["shape"])
            codes = np.array(file.read("codes"))
            if row.packs:
                codes = unpack(codes, row.name, int(np.prod(shape, dtype=np.int64)))
            else:
                codes = codes.view(row.code_dtype)
            return cls(
                codes=codes.reshape(shape),
                format=row.name,
                scale=np.array(file.read("scale")),
                offset=np.array(file.read("offset")) if "offset" in file.names else None,
                blocks=Blocks(tuple(form["blocks"])),
                record=Record.from_json(form["record"]),
                scale_format=form["scale_format"],
            )


def block_scales(scale: Array, format: str) -> Array:
    """Return what an MX element's code is multiplied by: 2**(byte - 127), and 2**-6 of that for MXINT8's integers."""
    row = formats[format]
    values = decode(scale, "e8m0")
    return np.ldexp(values, -row.mx_fraction_bits) if isinstance(row, IntFormat) else values


def _self_describing(q: QTensor) -> bool:
    """Whether safetensors has a dtype for these codes; hif8 and packed 4-bit codes travel as bytes."""
    return q.format in ("e4m3", "e5m2", "s8", "s16", "s32", "s64", "fp16", "bf16", "fp32")


def dequantize(q: QTensor, out: npt.NDArray[Any] | None = None) -> Array:
    """Return the real values of a quantized tensor: ``(code - offset) * scale`` as float32.

    Args:
        q: the quantized tensor.
        out: float32 array for the result.

    Returns:
        float32 array of the codes' shape.

    Source: seed:TDEQUANT, mathematical semantics.

    Example:
        >>> from narrowcast.quant import quantize
        >>> dequantize(quantize(np.float32([[0.5, -1.27]]), "s8")).tolist() == [[0.5, -1.2699999809265137]]
        True
    """
    return q.dequantize(out)
