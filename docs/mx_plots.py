"""Draw the plots of mx.md from real weights: ``python docs/mx_plots.py MODEL.safetensors [TENSOR]``.

The pages show the token embedding of wordllama 0.4.0.post1 (MIT licence; 32000 x 256, fp16), which its wheel holds as
``wordllama/weights/l2_supercat_256.safetensors``. Any other weight matrix may be drawn instead.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from narrowcast import mx
from narrowcast.mx import compare_rules
from narrowcast.storage import open_safetensors

IMAGES = Path(__file__).resolve().parent / "images"
INK, GRID, COLOURS = "#666", "#9994", ("#3b76c4", "#d9822b", "#3f9d5a", "#b04a5a", "#7a5bb5", "#8a8a8a")
WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 720, 300, 60, 40, 34
Array = np.ndarray[Any, np.dtype[Any]]


class Plot:
    """Axes, bars and lines as SVG text, in data units."""

    def __init__(self, title: str, x: tuple[float, float], y: tuple[float, float], labels: tuple[str, str]) -> None:
        self.x, self.y = x, y
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
            f'font-family="sans-serif" font-size="12" fill="{INK}"><title>{title}</title>',
            f'<text x="{LEFT}" y="16" font-size="13">{title}</text>',
            f'<text x="{(WIDTH + LEFT) / 2}" y="{HEIGHT - 6}" text-anchor="middle">{labels[0]}</text>',
            f'<text transform="translate(14,{(HEIGHT - BOTTOM + TOP) / 2}) rotate(-90)" text-anchor="middle">'
            f"{labels[1]}</text>",
        ]

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Place a point."""
        right = LEFT + (x - self.x[0]) / (self.x[1] - self.x[0]) * (WIDTH - LEFT - 16)
        up = HEIGHT - BOTTOM - (y - self.y[0]) / (self.y[1] - self.y[0]) * (HEIGHT - BOTTOM - TOP)
        return round(right, 1), round(up, 1)

    def ticks(self, x: Sequence[tuple[float, str]], y: Sequence[float]) -> None:
        """Draw tick labels, and a line for each y."""
        for value in y:
            left, up = self.at(self.x[0], value)
            self.parts.append(f'<path d="M{left} {up}H{WIDTH - 16}" stroke="{GRID}"/>')
            self.parts.append(f'<text x="{left - 6}" y="{up + 4}" text-anchor="end">{value:g}</text>')
        for value, label in x:
            right, up = self.at(value, self.y[0])
            self.parts.append(f'<text x="{right}" y="{up + 16}" text-anchor="middle">{label}</text>')

    def bar(self, low: float, high: float, value: float, colour: str) -> None:
        """Draw one bar."""
        (x0, y0), (x1, y1) = self.at(low, max(value, self.y[0])), self.at(high, self.y[0])
        self.parts.append(
            f'<rect x="{x0}" y="{y0}" width="{max(x1 - x0 - 0.6, 0.5):.1f}" height="{y1 - y0:.1f}" fill="{colour}"/>'
        )

    def line(self, points: Sequence[tuple[float, float]], colour: str, dash: str = "") -> None:
        """Draw a polyline."""
        path = " ".join("{},{}".format(*self.at(*p)) for p in points)
        self.parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"/>'
        )

    def text(self, x: float, y: float, words: str, colour: str = INK, anchor: str = "middle", lift: float = 4) -> None:
        """Write at a point."""
        right, up = self.at(x, y)
        self.parts.append(f'<text x="{right}" y="{up - lift}" text-anchor="{anchor}" fill="{colour}">{words}</text>')

    def legend(self, names: Sequence[str]) -> None:
        """Name the colours at the top right."""
        right = WIDTH - 16.0
        for name, colour in reversed(list(zip(names, COLOURS, strict=False))):
            self.parts.append(f'<text x="{right}" y="16" text-anchor="end" fill="{colour}">{name}</text>')
            right -= 7.0 * len(name) + 14

    def save(self, name: str) -> None:
        """Write the file."""
        IMAGES.mkdir(exist_ok=True)
        (IMAGES / f"{name}.svg").write_text("\n".join([*self.parts, "</svg>"]) + "\n", encoding="utf-8")


def clip_band(x: Array) -> None:
    """Histogram of the blocks' largest scaled magnitude under OCP's floor."""
    _, multiplier = mx.shared_scales(x, "e4m3", "ocp-floor")
    largest = np.abs(x.astype(np.float32)).reshape(x.shape[0], -1, 32).max(axis=2) * multiplier
    edges = np.linspace(256, 512, 65)
    share = 100 * np.histogram(largest, edges)[0] / largest.size
    lost = 100 * float((largest > 448).mean())
    plot = Plot(
        f"e4m3 under ocp-floor: {lost:.1f} % of the blocks have their largest element in the clip band (448, 512)",
        (256, 512),
        (0, float(share.max()) * 1.08),
        ("largest scaled magnitude of a block", "blocks, %"),
    )
    plot.ticks([(v, str(v)) for v in (256, 320, 384, 448, 512)], np.arange(0, share.max(), 0.5).tolist())
    for low, high, value in zip(edges[:-1], edges[1:], share, strict=True):
        plot.bar(float(low), float(high), float(value), COLOURS[1] if low >= 448 else COLOURS[0])
    plot.save("mx-clip-band")


def error_by_rule(x: Array) -> None:
    """Bars of SQNR for several rules, e4m3 and e2m1."""
    names = ["ocp-floor", "ceil", "ceil-log2", "even", "compressed-tensors", "mse2"]
    groups = [("e4m3", 28.0, 33.0), ("e2m1", 16.0, 21.0)]
    plot = Plot("SQNR in dB by scale rule", (0, 14), (0, 5), ("", "dB above 28 and above 16"))
    plot.ticks([(3.25, "e4m3"), (10.25, "e2m1")], [0, 1, 2, 3, 4, 5])
    for start, (fmt, low, high) in zip((0.25, 7.25), groups, strict=True):
        for i, rule in enumerate(compare_rules([("w", x)], fmt, names, worst=0).total):
            level = min(rule.sqnr_db, high) - low
            plot.bar(start + i, start + i + 0.95, level, COLOURS[i])
            plot.text(start + i + 0.45, level, f"{rule.sqnr_db:.1f}")
    plot.legend(names)
    plot.save("mx-error-by-rule")


def shrinking_weights(x: Array) -> None:
    """SQNR of e2m1 as the same tensor gets smaller: where rules flush whole blocks."""
    part = x[::16].astype(np.float32)
    rules = ["ocp-floor", "cann-0", "msmodelslim"]
    lines: dict[str, list[tuple[float, float]]] = {rule: [] for rule in rules}
    for power in [*range(0, 32, 2), *range(32, 112, 8), *range(112, 140, 2)]:
        for rule in compare_rules([("w", np.ldexp(part, -power))], "e2m1", rules, worst=0).total:
            lines[rule.rule].append((power, max(rule.sqnr_db, 0.0)))
    plot = Plot("e2m1: the same weights times 2^-k", (0, 138), (0, 20), ("k", "SQNR, dB"))
    plot.ticks([(v, str(v)) for v in (0, 20, 40, 60, 80, 100, 120)], [0, 5, 10, 15, 20])
    for (name, points), colour in zip(lines.items(), COLOURS, strict=False):
        plot.line(points, colour, "7 3" if name == "cann-0" else "")
    plot.legend(rules)
    plot.save("mx-shrinking-weights")


def ties(x: Array) -> None:
    """Share of elements exactly between two codes, by the precision the weights are stored in."""
    wide = x.astype(np.float32)
    sources = [("fp16", x.astype(np.float16)), ("bf16", wide.astype(ml_dtypes.bfloat16))]
    plot = Plot("elements exactly halfway between two codes (ocp-floor)", (0, 6.4), (0, 8), ("", "elements, %"))
    plot.ticks([], [0, 2, 4, 6, 8])
    at = 0.3
    for fmt in ("e4m3", "e2m1", "e1m2"):
        for colour, (name, values) in zip(COLOURS, sources, strict=False):
            total = compare_rules([("w", values)], fmt, ["ocp-floor"], worst=0).total[0]
            share = 100 * total.ties / total.elements
            plot.bar(at, at + 0.85, share, colour)
            plot.text(at + 0.42, share, f"{share:.2f} %")
            plot.text(at + 0.42, 0, f"{fmt} of {name}", lift=-16)
            at += 1
    plot.save("mx-ties")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, help="a .safetensors file")
    parser.add_argument("tensor", nargs="?", help="its weight matrix; by default the largest one")
    given = parser.parse_args()
    with open_safetensors(given.model) as file:
        matrices = [name for name in file.names if len(file.info(name).array_shape) == 2]
        name = given.tensor or max(matrices, key=lambda n: file.info(n).nbytes)
        x = np.array(file.read(name))
    x = x[:, : x.shape[1] // 32 * 32]
    for draw in (clip_band, error_by_rule, shrinking_weights, ties):
        draw(x)


if __name__ == "__main__":
    main()
