"""The command as a program: start-up, help, exit codes, one-line errors, interruptions, closed pipes."""

import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import narrowcast
from narrowcast.cli import main
from narrowcast.quant import Cast

PROGRAM = [sys.executable, "-m", "narrowcast"]
COMMANDS = [
    [],
    ["show"],
    ["show", "formats"],
    ["show", "rounding"],
    ["show", "casts"],
    ["explain"],
    ["cast"],
    ["quantize"],
    ["survey"],
    ["info"],
]
HEAVY = ("numpy", "ml_dtypes", "plotly", "jinja2", "safetensors", "rich.table", "rich.progress", "narrowcast.kernels")


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *arguments], capture_output=True, text=True, timeout=120, env={**os.environ, **environment}
    )


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: " ".join(c) or "narrowcast")
def test_help_is_light_and_has_examples(command: list[str]) -> None:
    program = (
        "import sys; from narrowcast.cli import main; code = main(sys.argv[1:]); "
        f"print('loaded', [m for m in {HEAVY!r} if m in sys.modules], code, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *command, "--help"], capture_output=True, text=True, timeout=60
    )
    assert done.stderr.split("\n")[-2] == "loaded [] 0"
    assert done.stdout.startswith("Usage: narrowcast")
    assert "..." not in done.stdout.partition("Commands:")[2].partition("Examples:")[0], "a summary is cut off"
    if command:
        assert "Examples:\n    narrowcast " in done.stdout
        assert "narrowcast " + " ".join(command) in done.stdout


@pytest.mark.skipif(os.name == "nt", reason="POSIX resource usage")
def test_help_answers_at_once() -> None:
    import resource

    def spent() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    # Processor time: the command neither waits nor uses threads, so on an idle machine this is the time it
    # takes, and on a busy one the other work does not count.
    times = []
    for _ in range(5):
        start = spent()
        run("--help")
        times.append(spent() - start)
    assert min(times) <= 0.25, times


def test_without_a_command_it_shows_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "Commands:" in capsys.readouterr().out
    assert main(["show"]) == 0
    assert "formats" in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"narrowcast {narrowcast.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["shwo"], "No such command 'shwo'"),
        (["cast"], "Missing argument"),
        (["cast", "in.npy", "--to", "s8"], "Missing option"),
        (["cast", "in.npy", "-o", "x.npy", "--to", "s8", "--rouding", "rn"], "No such option"),
        (["explain", "1"], "--format FORMAT reads a code, --to FORMAT explains a cast"),
        (["explain", "1", "--to", "e4m3", "--format", "e4m3"], "give one of them"),
        (["show", "formats", "--format"], "requires an argument"),
        (["show", "formats", "--format", "hif9"], "unknown format 'hif9'. Did you mean hif8"),
        (["show", "casts", "--chip", "77"], "unknown chip '77'"),
        (["explain", "1", "--to", "e4m3", "--rounding", "rq"], "unknown rounding mode 'rq'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_refusal_is_one_line_and_exit_code_2(
    arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("narrowcast: ") and shown.err.count("\n") == 1
    assert text in shown.err


def test_usage_errors_name_the_help_page(capsys: pytest.CaptureFixture[str]) -> None:
    main(["show", "formats", "--jsn"])
    assert "`narrowcast show formats --help`" in capsys.readouterr().err


def test_the_program_exits_with_the_code() -> None:
    done = run("explain", "1", "--to", "nothing")
    assert done.returncode == 2 and done.stdout == "" and done.stderr.startswith("narrowcast: unknown format")


def test_a_defect_is_told_apart_from_findings(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*arguments: object, **options: object) -> None:
        raise AssertionError("boom")

    monkeypatch.setattr("narrowcast.insight.explain.explain_cast", broken)
    assert main(["explain", "1", "--to", "e4m3"]) == 70
    assert "please report it" in capsys.readouterr().err


def test_warnings_are_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def warn(*arguments: object, **options: object) -> None:
        warnings.warn("something\nmay be off", UserWarning, stacklevel=1)
        raise KeyboardInterrupt

    before = warnings.showwarning
    monkeypatch.setattr("narrowcast.insight.explain.explain_cast", warn)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert main(["explain", "1", "--to", "e4m3"]) == 2
    assert capsys.readouterr().err == (
        "narrowcast: warning: something may be off\nnarrowcast: interrupted; no output was written\n"
    )
    assert warnings.showwarning is before


def test_interruption_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "in.npy", np.arange(100, dtype=np.float32))
    done = 0
    plain = Cast.__call__

    def interrupted(self: Cast, values: object, out: object = None) -> object:
        nonlocal done
        done += 1
        if done == 3:
            raise KeyboardInterrupt
        return plain(self, values, out)

    monkeypatch.setattr(Cast, "__call__", interrupted)
    monkeypatch.setattr("narrowcast.checkpoint.cast_file.CHUNK_ELEMENTS", 10)
    assert main(["cast", str(tmp_path / "in.npy"), "-o", str(tmp_path / "out.npy"), "--to", "hif8"]) == 2
    assert [p.name for p in tmp_path.iterdir()] == ["in.npy"]
    assert capsys.readouterr().err == "narrowcast: interrupted; no output was written\n"


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_ctrl_c_half_way(tmp_path: Path) -> None:
    source = tmp_path / "in.npy"
    shape = (64 << 20,)
    mapped = np.lib.format.open_memmap(source, mode="w+", dtype=np.float32, shape=shape)
    del mapped  # a sparse file: large, and made at once
    command = [*PROGRAM, "cast", str(source), "-o", str(tmp_path / "out.npy"), "--to", "hif8"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        if any(p.stat().st_size > 1 << 20 for p in tmp_path.glob(".out.npy.*.partial")):
            break
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 2, (out, err)
    assert out == "" and "Traceback" not in err
    assert [p.name for p in tmp_path.iterdir()] == ["in.npy"]


@pytest.mark.skipif(os.name == "nt", reason="POSIX pipes")
@pytest.mark.parametrize("command", [["show", "casts", "--json"], ["show", "rounding"], ["--help"]], ids=" ".join)
def test_a_closed_pipe_is_quiet(command: list[str]) -> None:
    # The reader is gone before the program starts, so that the size of the output does not matter.
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([*PROGRAM, *command], stdout=writer, stderr=subprocess.PIPE, text=True, timeout=60)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


def test_output_that_a_terminal_cannot_show_is_escaped() -> None:
    done = run("show", "formats", PYTHONIOENCODING="ascii", PYTHONUTF8="0", LC_ALL="C")
    assert done.returncode == 0, done.stderr
    assert "hif8" in done.stdout and done.stdout.isascii()


def test_findings_have_a_code_of_their_own() -> None:
    from narrowcast.cli import terminal

    assert terminal.FINDINGS == 1


def test_no_color_codes_outside_a_terminal() -> None:
    assert "\x1b" not in run("show", "formats").stdout
