"""``narrowcast info``: what runs here."""

from typing import Annotated, Any

import typer

from narrowcast.cli.terminal import examples, line, print_json

PEERS = ("en_dtypes", "gfloat", "onnxruntime", "torch", "distributed")
VARIABLES = ("NARROWCAST_KERNELS", "NARROWCAST_ISA", "NARROWCAST_NATIVE", "NARROWCAST_THREADS")
_LABELS = {
    "threads": "threads:",
    "threads_from_elements": "threads from, in elements:",
    "module": "module:",
    "stream_from_bytes": "writes past the cache from, in bytes:",
}
EPILOG = examples(
    "narrowcast info",
    "narrowcast info --json",
    after="JSON keys: narrowcast python platform libraries kernels environment peers.",
)


def info(json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show versions, which compiled kernels run and why, threads, and the variables that matter."""
    facts = _facts()
    if json:
        print_json(facts)
        return
    line("version", f"narrowcast {facts['narrowcast']}")
    line("python", f"{facts['python']} on {facts['platform']}")
    line("uses", ", ".join(f"{name} {version or 'missing'}" for name, version in facts["libraries"].items()))
    kernels = facts["kernels"]
    line("kernels", _level(kernels, facts["environment"]))
    for name, value in kernels.items():
        if name not in ("level", "why"):
            shown = f"{value:,}" if isinstance(value, int) else value
            line("", f"{_LABELS.get(name, name.replace('_', ' '))} {shown}")
    given = [f"{name}={value}" for name, value in facts["environment"].items() if value is not None]
    unset = [name for name, value in facts["environment"].items() if value is None]
    for i, text in enumerate(given):
        line("" if i else "variables", text)
    if unset:
        line("" if given else "variables", f"not set: {', '.join(unset)}")
    peers = [f"{name} {version}" for name, version in facts["peers"].items() if version]
    missing = [name for name, version in facts["peers"].items() if not version]
    line("peers", ", ".join(peers) or "none installed")
    if missing:
        line("", f"not installed (optional): {', '.join(missing)}")


def _level(kernels: dict[str, Any], environment: dict[str, str | None]) -> str:
    meaning = {
        "v3": "compiled, x86-64-v3 (AVX2)",
        "v2": "compiled, x86-64-v2 (SSE4)",
        "aarch64": "compiled, aarch64",
        "numpy": "NumPy only, same results but slower",
    }
    level = str(kernels["level"])
    why = kernels.get("why", "the best of this machine")
    if level != "numpy" and environment["NARROWCAST_ISA"]:
        why = f"NARROWCAST_ISA={environment['NARROWCAST_ISA']}"
    return f"{level}: {meaning.get(level, 'compiled')}; {why}"


def _facts() -> dict[str, Any]:
    import os
    import platform

    from narrowcast import kernels
    from narrowcast.version import VERSION

    return {
        "narrowcast": VERSION,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "libraries": {name: _installed(name) for name in ("numpy", "ml_dtypes", "safetensors", "typer", "rich")},
        "kernels": kernels.info(),
        "environment": {name: os.environ.get(name) for name in VARIABLES},
        "peers": {name: _installed(name) for name in PEERS},
    }


def _installed(name: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return None
