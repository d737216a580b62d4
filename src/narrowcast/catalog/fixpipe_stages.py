"""Stages of the Fixpipe in the order the device default has them, with the buffers they read and the open questions
they hold."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One stage of the pipe."""

    name: str
    does: str
    applies: str  # to which modes
    buffers: tuple[str, ...] = ()
    switches: tuple[str, ...] = ()


ROWS: tuple[Stage, ...] = (
    Stage(
        name="bias",
        does="the accumulator starts from it in Mmad; under the seed it is added here",
        applies="all",
        buffers=("Bias",),
        switches=("fixpipe_bias",),
    ),
    Stage(
        name="to FP32",
        does="an S32 accumulator becomes FP32, ties to even",
        applies="S32 modes",
        switches=("fixpipe_s32_to_fp32", "fixpipe_shift"),
    ),
    Stage(
        name="multiply",
        does="by the scale, or by the ReLU slope (0, one, or one a column) when the accumulator is negative",
        applies="scaled modes",
        buffers=("Quantization-pre", "RELU-pre"),
        switches=(
            "fixpipe_word",
            "fixpipe_scale_bits",
            "fixpipe_parameter_axis",
            "fixpipe_relu_order",
            "fixpipe_product",
        ),
    ),
    Stage(
        name="round",
        does="to an integer, ties to even, and clamp to -256..255",
        applies="integer modes",
        switches=("fixpipe_integer_rounding", "fixpipe_s9"),
    ),
    Stage(
        name="offset",
        does="add nine signed bits",
        applies="integer modes",
        buffers=("Quantization-pre",),
        switches=("fixpipe_offset_sign", "fixpipe_s4_offset", "fixpipe_float_offset"),
    ),
    Stage(
        name="convert",
        does="clamp to the integer target, or round once to the floating-point one",
        applies="all but the bypasses",
        switches=(
            "fixpipe_integer_overflow",
            "fixpipe_float_rounding",
            "fixpipe_float_saturation",
            "fixpipe_hif8_rounding",
            "fixpipe_zero_sign",
        ),
    ),
    Stage(
        name="clip",
        does="at most the bound of clip-ReLU, in the destination format",
        applies="with ReLU",
        switches=("fixpipe_clip_domain",),
    ),
    Stage(
        name="layout",
        does="NZ2NZ (channel merge, channel split), NZ2ND or NZ2DN; halves to two unit buffers",
        applies="all",
        switches=("nd_tail",),
    ),
)
