"""Survey and quantize a small real model: the 16 kHz voice detector of silero-vad (MIT), 0.31 M parameters.

The model is a file inside a Python wheel; the wheel is fetched once, unpacked and never installed, because
the package itself needs PyTorch. With a path as argument the demo uses that model and fetches nothing.
"""

import argparse
import subprocess
import sys
import zipfile
from pathlib import Path

WHEEL = "silero-vad==6.2.3"
MEMBER = "silero_vad_16k.safetensors"
FORMATS = "hif8,e4m3,e5m2,s8,e2m1"


def fetch(folder: Path) -> Path:
    """Return the demo's model, from the cached wheel where there is one."""
    model = folder / MEMBER
    if model.exists():
        return model
    if not list(folder.glob("silero_vad-*.whl")):
        print(f"fetching {WHEEL} (MIT licence)")
        subprocess.run(
            [
                sys.executable,
                "-m",
                "pip",
                "download",
                "--quiet",
                "--disable-pip-version-check",
                "--no-deps",
                "--dest",
                str(folder),
                WHEEL,
            ],
            check=True,
        )
    wheel = next(iter(folder.glob("silero_vad-*.whl")))
    with zipfile.ZipFile(wheel) as archive:
        name = next(n for n in archive.namelist() if n.endswith("/" + MEMBER))
        # Written under another name first, so that an interrupted run leaves no half model behind.
        part = model.with_suffix(".part")
        part.write_bytes(archive.read(name))
        part.rename(model)
    return model


def narrowcast(*arguments: str) -> None:
    """Run the command line tool as a user would, and show the command."""
    print("\n$ narrowcast " + " ".join(arguments), flush=True)
    subprocess.run([sys.executable, "-m", "narrowcast", *arguments], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", nargs="?", type=Path, help="a .safetensors file; fetched where not given")
    parser.add_argument("--folder", type=Path, default=Path("demo"), help="where the files go (default: demo)")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    model: Path = given.model or fetch(given.folder)
    report = given.folder / "report.html"
    output = given.folder / f"{model.stem}.hif8.safetensors"

    narrowcast("survey", str(model), "--formats", FORMATS, "--html", str(report), "--force")
    narrowcast("quantize", str(model), "--to", "hif8", "-o", str(output), "--force")

    before, after = model.stat().st_size, output.stat().st_size
    print(f"\nmodel      {model}  ({before:,} bytes)")
    print(f"quantized  {output}  ({after:,} bytes, {before / after:.2f}x smaller)")
    print(f"report     {report.resolve().as_uri()}")


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as failed:
        sys.exit(failed.returncode)
