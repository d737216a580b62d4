"""The same conversions by other libraries, where they have them.

A slow library gets a slice of the input, which flatters it: the slice stays nearer to the processor.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]
Build = Callable[[dict[str, Array], int], Callable[[], object]]

NAMES = ("ml_dtypes", "en_dtypes", "gfloat", "onnxruntime", "torch", "torchao")


@dataclass(frozen=True)
class Peer:
    """One library's way of one workload; ``build`` gets the inputs, cut to ``elements``, and the thread count."""

    library: str
    workload: str
    elements: int
    build: Build


def missing() -> list[str]:
    """Libraries that are not installed."""
    return [name for name in NAMES if find_spec(name) is None]


def peers() -> list[Peer]:
    """Every peer whose library is installed."""
    absent = missing()
    return [peer for peer in _PEERS if peer.library not in absent]


def _as(dtype: Any, key: str = "x") -> Build:
    return lambda inputs, threads: lambda: inputs[key].astype(dtype)


def _from(dtype: Any) -> Build:
    return lambda inputs, threads: lambda: inputs["codes"].view(dtype).astype(np.float32)


def _and_back(dtype: Any) -> Build:
    return lambda inputs, threads: lambda: inputs["x"].astype(dtype).astype(np.float32)


def _hifloat8() -> Any:
    return import_module("en_dtypes").hifloat8


def _en(make: Callable[[Any], Build]) -> Build:
    return lambda inputs, threads: make(_hifloat8())(inputs, threads)


def _gfloat(what: str) -> Build:
    def build(inputs: dict[str, Array], threads: int) -> Callable[[], object]:
        gfloat: Any = import_module("gfloat")
        info = import_module("gfloat.formats").format_info_ocp_e4m3

        match what:
            case "encode":
                return lambda: gfloat.encode_ndarray(
                    info, gfloat.round_ndarray(info, inputs["x"].astype(np.float64), sat=True)
                )
            case "decode":
                return lambda: gfloat.decode_ndarray(info, inputs["codes"])
            case _:
                return lambda: gfloat.round_ndarray(info, inputs["x"].astype(np.float64), sat=True)

    return build


def _torch(what: str) -> Build:
    def build(inputs: dict[str, Array], threads: int) -> Callable[[], object]:
        torch: Any = import_module("torch")
        torch.set_num_threads(threads)
        dtype = {"e4m3": torch.float8_e4m3fn, "bf16": torch.bfloat16, "fp16": torch.float16}
        match what:
            case "decode":
                codes = torch.from_numpy(inputs["codes"]).view(torch.float8_e4m3fn)
                return lambda: codes.to(torch.float32)
            case "fake-quant":
                x = torch.from_numpy(inputs["x"])
                return lambda: x.to(torch.float8_e4m3fn).to(torch.float32)
            case "rows":
                rows, scale = torch.from_numpy(inputs["rows"]), torch.from_numpy(inputs["scale"])
                zero = torch.zeros(scale.shape, dtype=torch.int32)
                return lambda: torch.quantize_per_channel(rows, scale, zero, 0, torch.qint8)
            case _:
                x = torch.from_numpy(inputs["x"])
                return lambda: x.to(dtype[what])

    return build


def _torchao(dtype: str, rule: str) -> Build:
    def build(inputs: dict[str, Array], threads: int) -> Callable[[], object]:
        torch: Any = import_module("torch")
        torch.set_num_threads(threads)
        mx: Any = import_module("torchao.prototype.mx_formats.mx_tensor")
        rows = torch.from_numpy(inputs["rows"])
        mode = getattr(mx.ScaleCalculationMode, rule)
        return lambda: mx.to_mx(rows, getattr(torch, dtype), 32, mode)

    return build


def _microxcaling(emax: int, fraction_bits: int, smallest: int, largest: float) -> Build:
    """microxcaling's algorithm in torch: floor of log2, divide, round the significand, multiply back."""

    def build(inputs: dict[str, Array], threads: int) -> Callable[[], object]:
        torch: Any = import_module("torch")
        torch.set_num_threads(threads)
        blocks = torch.from_numpy(inputs["rows"]).reshape(-1, 32)

        def quantize() -> object:
            amax = blocks.abs().amax(dim=1, keepdim=True)
            shared = torch.floor(torch.log2(amax + (amax == 0) * 2.0**-126)) - emax
            scaled = blocks / torch.exp2(shared)
            exponent = torch.floor(torch.log2(scaled.abs() + (scaled == 0) * 1.0)).clamp(min=smallest)
            step = torch.exp2(exponent - fraction_bits)
            return (torch.round(scaled / step) * step).clamp(-largest, largest) * torch.exp2(shared)

        return quantize

    return build


def _onnxruntime(operator: str, code: int, opset: int = 13) -> Build:
    """Run QuantizeLinear or DequantizeLinear over rows; the model is four protobuf messages, so no onnx package."""

    def build(inputs: dict[str, Array], threads: int) -> Callable[[], object]:
        onnxruntime: Any = import_module("onnxruntime")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        rows, scale = inputs["rows"], inputs["scale"]
        model = _linear_model(operator, code, opset)
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        feeds = {"x": rows, "scale": scale, "zero": np.zeros(scale.size, dtype=_ONNX_TYPES[code])}
        return lambda: session.run(None, feeds)

    return build


def _message(*fields: tuple[int, bytes | int | str]) -> bytes:
    """Encode protobuf fields: integers as varints, text and messages with their length."""

    def varint(n: int) -> bytes:
        out = bytearray()
        while True:
            out.append((n & 0x7F) | (0x80 if n > 0x7F else 0))
            n >>= 7
            if not n:
                return bytes(out)

    encoded = b""
    for number, value in fields:
        if isinstance(value, int):
            encoded += varint(number << 3) + varint(value)
        else:
            raw = value.encode() if isinstance(value, str) else value
            encoded += varint(number << 3 | 2) + varint(len(raw)) + raw
    return encoded


_ONNX_TYPES = {2: np.uint8, 3: np.int8, 5: np.int16}
"""ONNX element type numbers of integer codes."""


def _linear_model(operator: str, code: int, opset: int) -> bytes:
    def tensor(name: str, element_type: int, axes: tuple[str, ...]) -> bytes:
        dimensions = _message(*((1, _message((2, axis))) for axis in axes))
        return _message((1, name), (2, _message((1, _message((1, element_type), (2, dimensions))))))

    floats = 1
    before, after = (floats, code) if operator == "QuantizeLinear" else (code, floats)
    axis = _message((1, "axis"), (3, 0), (20, 2))
    node = _message((1, "x"), (1, "scale"), (1, "zero"), (2, "y"), (4, operator), (5, axis))
    graph = _message(
        (1, node),
        (2, "rows"),
        (11, tensor("x", before, ("r", "c"))),
        (11, tensor("scale", floats, ("r",))),
        (11, tensor("zero", code, ("r",))),
        (12, tensor("y", after, ("r", "c"))),
    )
    return _message((1, 8), (7, graph), (8, _message((1, ""), (2, opset))))


_E4M3, _BF16 = ml_dtypes.float8_e4m3fn, ml_dtypes.bfloat16
_ALL, _MEDIUM, _SMALL = 1 << 24, 1 << 20, 1 << 16

_PEERS = (
    Peer("ml_dtypes", "fp32 -> e4m3 rn", _MEDIUM, _as(_E4M3)),
    Peer("ml_dtypes", "e4m3 -> fp32", _MEDIUM, _from(_E4M3)),
    Peer("ml_dtypes", "fp32 -> bf16 rn", _ALL, _as(_BF16)),
    Peer("ml_dtypes", "fake-quant e4m3 rn", _MEDIUM, _and_back(_E4M3)),
    Peer("en_dtypes", "fp32 -> hif8 rna", _MEDIUM, _en(_as)),
    Peer("en_dtypes", "hif8 -> fp32", _MEDIUM, _en(_from)),
    Peer("en_dtypes", "fake-quant hif8 rna", _MEDIUM, _en(_and_back)),
    Peer("gfloat", "fp32 -> e4m3 rn", _SMALL, _gfloat("encode")),
    Peer("gfloat", "e4m3 -> fp32", _SMALL, _gfloat("decode")),
    Peer("gfloat", "fake-quant e4m3 rn", _SMALL, _gfloat("round")),
    Peer("onnxruntime", "fp32 -> s8 per row", _ALL, _onnxruntime("QuantizeLinear", 3)),
    Peer("onnxruntime", "TQUANT s8", _ALL, _onnxruntime("QuantizeLinear", 3)),
    Peer("onnxruntime", "TQUANT u8", _ALL, _onnxruntime("QuantizeLinear", 2)),
    Peer("onnxruntime", "TDEQUANT s8", _ALL, _onnxruntime("DequantizeLinear", 3)),
    Peer("onnxruntime", "TDEQUANT s16", _ALL, _onnxruntime("DequantizeLinear", 5, 21)),
    Peer("torch", "fp32 -> e4m3 rn", _ALL, _torch("e4m3")),
    Peer("torch", "e4m3 -> fp32", _MEDIUM, _torch("decode")),
    Peer("torch", "fp32 -> bf16 rn", _ALL, _torch("bf16")),
    Peer("torch", "fp32 -> fp16 rn", _ALL, _torch("fp16")),
    Peer("torch", "fake-quant e4m3 rn", _ALL, _torch("fake-quant")),
    Peer("torch", "fp32 -> s8 per row", _MEDIUM, _torch("rows")),
    Peer("torch", "MX e4m3 ocp-floor", _MEDIUM, _microxcaling(8, 3, -6, 448.0)),
    Peer("torch", "MX e2m1 ocp-floor", _MEDIUM, _microxcaling(2, 1, 0, 6.0)),
    Peer("torch", "MX e1m2 ocp-floor", _MEDIUM, _microxcaling(0, 2, 0, 1.75)),
    Peer("torchao", "MX e4m3 ocp-floor", _ALL, _torchao("float8_e4m3fn", "FLOOR")),
    Peer("torchao", "MX e4m3 ceil", _ALL, _torchao("float8_e4m3fn", "RCEIL")),
    Peer("torchao", "MX e2m1 ocp-floor", _ALL, _torchao("float4_e2m1fn_x2", "FLOOR")),
    Peer("torchao", "MX e2m1 ceil", _ALL, _torchao("float4_e2m1fn_x2", "RCEIL")),
    Peer("torchao", "MX e2m1 packed", _ALL, _torchao("float4_e2m1fn_x2", "FLOOR")),
)


def cut(inputs: dict[str, Array], elements: int) -> dict[str, Array]:
    """Give a peer as much of the inputs as it is measured on; rows stay whole."""
    if "rows" not in inputs:
        return {name: array[:elements] for name, array in inputs.items()}
    rows, scale = inputs["rows"], inputs["scale"]
    count = max(1, elements // rows.shape[1])
    return {"rows": rows[:count], "scale": scale[:count]}
