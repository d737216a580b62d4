"""An int8 linear layer on path A: real weights through the Cube and the Fixpipe, against float and plain NumPy int8.

The layer is the input projection (128 -> 512) of the LSTM in silero-vad (MIT), and its inputs are what the model's own
encoder makes of a synthetic signal of chirps and noise.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from demo import fetch

import narrowcast as nc
from narrowcast.storage import open_safetensors

Array = np.ndarray[Any, np.dtype[Any]]
HOP, PAD = 128, 64


def convolve(x: Array, weight: Array, stride: int = 1, pad: int = 1, bias: Array | None = None) -> Array:
    """Convolve [channels, time] with [outputs, channels, taps]."""
    padded = np.pad(x, ((0, 0), (pad, pad)))
    taps = np.lib.stride_tricks.sliding_window_view(padded, weight.shape[2], axis=1)[:, ::stride]
    result: Array = np.einsum("ctk,ock->ot", taps, weight, optimize=True)
    return result if bias is None else result + bias[:, None]


def layer_inputs(model: dict[str, Array], seconds: float = 4.0, rate: int = 16000) -> Array:
    """Run the encoder on a signal: [frames, 128]."""
    t = np.arange(int(seconds * rate)) / rate
    chirps = sum(np.sin(2 * np.pi * (f * t + 60 * t * t)) / (i + 1) for i, f in enumerate((120, 240, 360, 950)))
    envelope = np.clip(np.sin(2 * np.pi * 1.5 * t), 0, 1)
    noise = np.random.default_rng(0).standard_normal(t.size)
    signal = (0.25 * envelope * chirps + 0.01 * noise).astype(np.float32)
    spectrum = convolve(signal[None], model["stft_conv.weight"], HOP, PAD)
    bins = spectrum.shape[0] // 2
    x = np.hypot(spectrum[:bins], spectrum[bins:])
    for i, stride in ((1, 1), (2, 2), (3, 2), (4, 1)):
        x = np.maximum(convolve(x, model[f"conv{i}.weight"], stride, 1, model[f"conv{i}.bias"]), 0)
    return np.ascontiguousarray(x.T, dtype=np.float32)


def error(got: Array, want: Array) -> float:
    """Relative error in the Euclidean norm."""
    return float(np.linalg.norm(got - want) / np.linalg.norm(want))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", nargs="?", type=Path, help="silero_vad_16k.safetensors; fetched where not given")
    parser.add_argument("--folder", type=Path, default=Path("demo"), help="where the files go (default: demo)")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    with open_safetensors(given.model or fetch(given.folder)) as file:
        model = {name: np.array(file.read(name)) for name in file.names}

    x = layer_inputs(model)
    weight, bias = model["lstm_cell.weight_ih"], model["lstm_cell.bias_ih"]  # [512, 128], [512]
    exact = x.astype(np.float64) @ weight.T.astype(np.float64) + bias
    print(f"layer      [{x.shape[0]}, {x.shape[1]}] x [{weight.shape[1]}, {weight.shape[0]}]")

    qx = nc.quantize(x, "s8")  # one scale for the activations
    qw = nc.quantize(weight, "s8", blocks=nc.Blocks.per_row)  # one scale per output channel
    step = qx.scale.reshape(()) * qw.scale.reshape(-1)  # what one unit of the accumulator is worth
    start = np.rint(bias / step).astype(np.int32)
    acc = nc.cube.mmad(qx.codes, qw.codes.T, bias=start)  # S32, exact
    largest = np.float32(np.abs(exact).max() / 127)  # calibrated output step

    path_a = nc.fixpipe.run(acc, "REQ8", step / largest)
    plain = np.clip(np.rint(acc * (step / largest)), -128, 127)
    half = nc.fixpipe.run(acc, "DEQF16", step)
    differ = int((path_a.values != plain).sum())
    print(f"float32    {error((x @ weight.T + bias), exact):.2e}")
    print(f"path A     {error(path_a.values * largest, exact):.4%} with REQ8 (s8 out), {path_a.cycles} cycles")
    print(f"NumPy int8 {error(plain * largest, exact):.4%}, {differ} of {plain.size} codes differ from path A")
    print(f"path A     {error(half.values, exact):.4%} with DEQF16 (fp16 out)")

    np.save(given.folder / "x.npy", qx.codes.view(np.int8))
    np.save(given.folder / "w.npy", np.ascontiguousarray(qw.codes.view(np.int8).T))
    np.save(given.folder / "bias.npy", start)
    np.save(given.folder / "scale.npy", (step / largest).astype(np.float32))
    np.save(given.folder / "expected.npy", path_a.values.astype(np.int8))
    print(f"saved      x.npy w.npy bias.npy scale.npy expected.npy in {given.folder}")

    first = np.argwhere(path_a.values != plain)
    if first.size:
        row, column = (int(i) for i in first[0])
        words = nc.fixpipe.quant_words(step / largest, 0, True)
        print(f"\nThe first difference, [{row}, {column}]: NumPy gives {int(plain[row, column])}. On path A:")
        print(nc.fixpipe.journey(nc.fixpipe.Fixpipe(mode="REQ8"), {"acc": acc, "words": words}, row, column))


if __name__ == "__main__":
    main()
