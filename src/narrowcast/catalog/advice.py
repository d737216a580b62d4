"""The seed's rounding decision tree (5.3), as data."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class LeafRow:
    """An answer of the tree: a mode and the seed's words for it."""

    mode: str
    says: str
    original: str  # the seed's own line
    source: str = "seed:5.3"


@dataclass(frozen=True, kw_only=True)
class QuestionRow:
    """A question of the tree; ``branches`` leads from each answer to a question's name or to a leaf."""

    name: str
    asks: str
    original: str
    branches: tuple[tuple[str, "str | LeafRow"], ...]
    source: str = "seed:5.3"

    def branch(self, answer: str) -> "str | LeafRow":
        """Follow an answer."""
        return dict(self.branches)[answer]


ROOT = "special"

QUESTIONS: tuple[QuestionRow, ...] = (
    QuestionRow(
        name="special",
        asks="Is it one of the special cases?",
        original="特殊场景",
        branches=(
            ("no", "training"),
            (
                "upper-bound",
                LeafRow(
                    mode="ru",
                    says="the upper bound of a quantization range: round up",
                    original="量化范围上界截断 → ru / CAST_CEIL",
                ),
            ),
            (
                "lower-bound",
                LeafRow(
                    mode="rd",
                    says="the lower bound of a quantization range: round down",
                    original="量化范围下界截断 → rd / CAST_FLOOR",
                ),
            ),
            (
                "accumulation",
                LeafRow(
                    mode="ro",
                    says="mixed-precision accumulation: round to odd keeps the precision for the next rounding",
                    original="混合精度累加 → ro (round to odd, 保持精度)",
                ),
            ),
        ),
    ),
    QuestionRow(
        name="training",
        asks="Is it training?",
        original="是否是训练场景?",
        branches=(
            (
                "yes",
                LeafRow(
                    mode="rn",
                    says="training: nearest, ties to even, unbiased",
                    original="是 → rn / CAST_RINT (round to nearest even, 无偏)",
                ),
            ),
            ("no", "hif8"),
        ),
    ),
    QuestionRow(
        name="hif8",
        asks="Is the target HiF8?",
        original="HiF8 场景",
        branches=(
            (
                "yes",
                LeafRow(
                    mode="rh",
                    says="HiF8: hybrid rounding, made for it",
                    original="HiF8 场景 → rh (hybrid, HiF8专用)",
                ),
            ),
            ("no", "unbiased"),
        ),
    ),
    QuestionRow(
        name="unbiased",
        asks="Must the result be unbiased?",
        original="是否要求无偏量化?",
        branches=(
            (
                "yes",
                LeafRow(
                    mode="rn",
                    says="inference without bias: nearest, ties to even",
                    original="是 → rn / CAST_RINT",
                ),
            ),
            ("no", "prefer"),
        ),
    ),
    QuestionRow(
        name="prefer",
        asks="Does speed come first?",
        original="性能优先?",
        branches=(
            (
                "speed",
                LeafRow(
                    mode="rz", says="speed first: truncation, called the fastest", original="是 → rz (trunc, 最快)"
                ),
            ),
            (
                "accuracy",
                LeafRow(
                    mode="rna",
                    says="accuracy first: nearest, ties away from zero",
                    original="否 → rna / CAST_ROUND (精度好)",
                ),
            ),
        ),
    ),
)

questions: dict[str, QuestionRow] = {row.name: row for row in QUESTIONS}

SPEED_NOTE = (
    "No performance table varies with the rounding mode, so rz being the fastest has no figure behind it "
    "[asc-devkit:register instruction appendix]."
)


def leaves(start: str = ROOT) -> tuple[LeafRow, ...]:
    """Every leaf under a question, in the tree's order."""
    found: list[LeafRow] = []
    for _, branch in questions[start].branches:
        found.extend(leaves(branch) if isinstance(branch, str) else (branch,))
    return tuple(found)
