"""What the conversion of a checkpoint did, tensor by tensor."""

from dataclasses import dataclass

from narrowcast.insight.statistics import decibels


@dataclass(frozen=True)
class TensorResult:
    """One tensor of a converted file.

    Attributes:
        name, dtype, shape, elements, nbytes: the tensor as it was.
        stored: dtype string in the new file.
        stored_bytes: its bytes there, scale included.
        kept: why it was copied unchanged, None if it was quantized.
        scale: real = code value * scale.
        signal, noise: sums of squares of the values and of the errors.
        max_error: largest absolute error.
        saturated: share of the finite elements clamped to the largest code.
        flushed: share of the non-zero elements that became zero.
        nonfinite: NaN and infinite elements.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    elements: int
    nbytes: int
    stored: str
    stored_bytes: int
    kept: str | None = None
    scale: float = 1.0
    signal: float = 0.0
    noise: float = 0.0
    max_error: float = 0.0
    saturated: float = 0.0
    flushed: float = 0.0
    nonfinite: int = 0

    @property
    def sqnr_db(self) -> float:
        """Give 10 log10(signal / noise): infinite when exact, NaN for a tensor of zeros."""
        return decibels(self.signal, self.noise)


@dataclass(frozen=True)
class QuantizedFile:
    """A converted file.

    Attributes:
        source, output: the two files.
        source_bytes, output_bytes: their sizes.
        format, rounding: what the weights became, and how.
        scaled: whether each tensor has its own scale.
        tensors: in file order.
        version: version of the package.
    """

    source: str
    output: str
    source_bytes: int
    output_bytes: int
    format: str
    rounding: str
    scaled: bool
    tensors: tuple[TensorResult, ...]
    version: str

    @property
    def quantized(self) -> tuple[TensorResult, ...]:
        """List the tensors that were quantized."""
        return tuple(t for t in self.tensors if t.kept is None)

    @property
    def kept(self) -> tuple[TensorResult, ...]:
        """List the tensors that were copied unchanged."""
        return tuple(t for t in self.tensors if t.kept is not None)

    @property
    def sqnr_db(self) -> float:
        """Give the SQNR over all quantized tensors together."""
        return decibels(sum(t.signal for t in self.quantized), sum(t.noise for t in self.quantized))
