"""The ``narrowcast`` command. One file per command: it parses and prints, the library does the work.

Nothing heavy is imported here or at the top of a command's file, so that ``--help`` answers at once.
"""

import difflib
import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from narrowcast.cli import (
    advise,
    asm,
    cast,
    check,
    diagnose,
    disasm,
    explain,
    fixpipe,
    info,
    matmul,
    mx,
    plan,
    quantize,
    run,
    show,
    survey,
    trace,
)
from narrowcast.cli.terminal import CONTEXT
from narrowcast.errors import NarrowcastError

REFUSED = 2
"""Exit code of a command that left no result: refused (usage, names, files), a full disk, or Ctrl-C."""
READER_GONE = 141
"""Exit code when the other end of a pipe closed, the one a shell gives for SIGPIPE."""
DEFECT = 70
"""Exit code of an error nobody foresaw; 1 is taken by findings."""

_UsageError: type[Exception] = typer.BadParameter.__bases__[0]

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings=CONTEXT,
    epilog="Every command's --help has examples. Exit codes: 0 done; 1 findings; 2 no result "
    "(usage, names, files, Ctrl-C).",
)


def _version(wanted: bool) -> None:
    if wanted:
        import narrowcast

        print(f"narrowcast {narrowcast.__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def narrowcast_command(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Number formats, rounding and casts of the Ascend 950, bit for bit."""
    if context.invoked_subcommand is None:
        print(context.get_help())


app.add_typer(show.app, name="show")
app.add_typer(advise.app, name="advise")
for _function, _module, _short in (
    (explain.explain, explain, "Explain a code, or what a cast does to a value and why."),
    (cast.cast, cast, "Cast the array of a .npy file to a format."),
    (quantize.quantize, quantize, "Quantize the weights of a checkpoint to one format."),
    (survey.survey, survey, "Survey what each format would do to a checkpoint."),
    (mx.mx, mx, "Compare MX scale rules on a checkpoint."),
    (fixpipe.fixpipe, fixpipe, "Send accumulators through the Cube's output pipe."),
    (matmul.matmul, matmul, "Multiply matrices, through the output pipe."),
    (plan.plan, plan, "Plan what quantizing a matrix product's result costs."),
    (asm.asm, asm, "Assemble a tile program into bundle words."),
    (disasm.disasm, disasm, "Disassemble bundle words."),
    (run.run, run, "Run a tile program on arrays."),
    (trace.trace, trace, "List what a chip executes for a tile instruction."),
    (diagnose.diagnose, diagnose, "Diagnose a quantized tensor, and try the fixes."),
    (check.check, check, "Check a program against the machine's rules."),
    (info.info, info, "Show versions, kernels, threads and variables."),
):
    _settings = {**CONTEXT, **getattr(_module, "PARSING", {})}
    _class = getattr(_module, "Command", None)
    app.command(epilog=_module.EPILOG, short_help=_short, context_settings=_settings, cls=_class)(_function)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: words after the program's name; by default the process's own.

    Returns:
        The exit code: 0 done, 1 findings, 2 refused or interrupted, 141 when a pipe's reader went away.
    """
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        try:
            return _invoke(sys.argv[1:] if arguments is None else list(arguments))
        except BrokenPipeError:
            # What is left in the buffer has no reader; without this the interpreter would complain at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return READER_GONE


def _invoke(arguments: list[str]) -> int:
    command = typer.main.get_command(app)
    try:
        # Not command.main(): it turns Ctrl-C and a closed pipe into exit codes of its own.
        with command.make_context("narrowcast", arguments) as context:
            command.invoke(context)
        sys.stdout.flush()
        return 0
    except typer.Exit as request:
        sys.stdout.flush()
        return request.exit_code
    except (KeyboardInterrupt, typer.Abort):
        return _complain("interrupted; no output was written", REFUSED)
    except NarrowcastError as error:
        return _complain(str(error), REFUSED)
    except _UsageError as error:
        return _complain(_usage(error, arguments), REFUSED)
    except BrokenPipeError:
        raise
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _complain(f"{where}{error.strerror or error}.", REFUSED)
    except MemoryError:
        return _complain("out of memory.", DEFECT)
    except Exception:
        traceback.print_exc()
        return _complain("this is a defect of narrowcast; please report it with the lines above.", DEFECT)


def _complain(message: str, code: int) -> int:
    line = " ".join(message.split())
    print(f"narrowcast: {line}", file=sys.stderr)
    return code


def _usage(error: Any, arguments: list[str]) -> str:
    path = error.ctx.command_path if error.ctx else "narrowcast"
    message = error.format_message().rstrip(".")
    if error.ctx and error.ctx.ignore_unknown_options:
        message = _unknown_option(error.ctx.command, arguments) or message
    return f"{message}. See `{path} --help`."


def _unknown_option(command: Any, arguments: list[str]) -> str | None:
    """Name the misspelt option that a command which takes negative numbers saw as a value."""
    known = [name for p in command.params for name in (*p.opts, *p.secondary_opts) if name.startswith("--")]
    for word in arguments:
        name = word.partition("=")[0]
        if name.startswith("--") and name not in (*known, "--", "--help"):
            close = difflib.get_close_matches(name, known, n=1)
            return f"No such option: {name}" + (f" (did you mean {close[0]}?)" if close else "")
    return None


def _show_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, file: Any = None, line: Any = None
) -> None:
    print(f"narrowcast: warning: {' '.join(str(message).split())}", file=sys.stderr)
