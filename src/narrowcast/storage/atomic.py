"""Outputs that appear whole under their name, or not at all."""

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from narrowcast.errors import OutputError

_FULL = {errno.ENOSPC, errno.EDQUOT}


def _explain(error: OSError, path: Path) -> OutputError:
    """Turn an operating-system error on an output into one that says what to do."""
    folder = path.parent
    if error.errno in _FULL:
        return OutputError(
            f"cannot write {path}: the disk is full; nothing was left under that name.",
            hint=f"Free space on the disk that holds {folder}, or name an output on another disk.",
        )
    if error.errno == errno.ENOENT:
        return OutputError(
            f"cannot write {path}: the folder {folder} does not exist.",
            hint=f"Create it: mkdir -p '{folder}'.",
        )
    if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        return OutputError(
            f"cannot write {path}: {error.strerror}.", hint="Name an output in a folder that you may write."
        )
    return OutputError(f"cannot write {path}: {error.strerror or error}; nothing was left under that name.")


class AtomicFile:
    """Write a file that gets its name only when it is complete.

    The bytes go to a temporary file in the same folder, which is flushed to the disk and then renamed. Any
    exception, Ctrl-C included, removes the temporary file and leaves an older file of that name as it was.

    Args:
        path: the final name. A symbolic link is followed, so that the link survives.
        force: replace a file that exists; without it an existing file is refused before any work is done.

    Raises:
        OutputError: the name exists, is no regular file, its folder is missing or may not be written,
            or the disk is full.

    Example:
        >>> import tempfile, pathlib
        >>> target = pathlib.Path(tempfile.mkdtemp()) / "codes.bin"
        >>> with AtomicFile(target) as out:
        ...     _ = out.file.write(b"\\x7e")
        >>> target.read_bytes()
        b'~'
    """

    def __init__(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        self.shown = Path(path)
        self.path = Path(os.path.realpath(path))
        self.force = force
        self.refuse_existing()
        self.temporary = self.path.with_name(f".{self.path.name[:100]}.{secrets.token_hex(6)}.partial")
        self._file: IO[bytes] | None = None
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
            self._file = os.fdopen(os.open(self.temporary, flags, 0o666), "w+b")
        except OSError as error:
            raise _explain(error, self.shown) from error

    @property
    def file(self) -> IO[bytes]:
        """Give the open temporary file."""
        if self._file is None:
            raise OutputError(f"{self.shown} is closed.")
        return self._file

    def refuse_existing(self) -> None:
        """Refuse a name that is taken (unless forced) or that is not a regular file."""
        try:
            mode = self.path.stat().st_mode
        except FileNotFoundError:
            return
        except OSError as error:
            raise _explain(error, self.shown) from error
        if stat.S_ISDIR(mode):
            raise OutputError(f"{self.shown} is a folder.", hint="Name a file.")
        if not stat.S_ISREG(mode):
            raise OutputError(f"{self.shown} is not a regular file, so it cannot be replaced.", hint="Name a file.")
        if not self.force:
            raise OutputError(
                f"{self.shown} exists already.",
                hint="Name another output, or replace it with --force (force=True).",
            )

    def commit(self, check: Callable[[Path], None] | None = None) -> None:
        """Flush to the disk, let ``check`` look at the finished temporary file, and give it its name."""
        file = self.file
        with self.explained():
            file.flush()
            os.fsync(file.fileno())
            if check is not None:
                check(self.temporary)
            self._file = None
            file.close()
            self.refuse_existing()
            os.replace(self.temporary, self.path)
            _sync_folder(self.path.parent)

    def discard(self) -> None:
        """Remove the temporary file; the final name is not touched."""
        file, self._file = self._file, None
        if file is not None:
            # The buffered rest may fail to reach a full disk again; the file goes away in any case.
            with contextlib.suppress(OSError):
                file.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.temporary)

    @contextlib.contextmanager
    def explained(self) -> Iterator[None]:
        """Turn operating-system errors inside the block into an :class:`OutputError` about this output."""
        try:
            yield
        except OutputError:
            raise
        except OSError as error:
            raise _explain(error, self.shown) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            try:
                self.commit()
            except BaseException:
                self.discard()
                raise
            return
        self.discard()


@contextlib.contextmanager
def atomic_output(path: str | os.PathLike[str], force: bool = False) -> Iterator[IO[bytes]]:
    """Open a binary file for writing that appears under ``path`` only when the block ends well.

    Args:
        path: the final name.
        force: replace an existing file.

    Returns:
        A context manager over the binary file.

    Raises:
        OutputError: see :class:`AtomicFile`; a full disk inside the block becomes one, too.

    Example:
        >>> import tempfile, pathlib
        >>> target = pathlib.Path(tempfile.mkdtemp()) / "page.html"
        >>> with atomic_output(target) as out:
        ...     _ = out.write(b"<p>done")
        >>> target.exists()
        True
    """
    with AtomicFile(path, force=force) as output:
        try:
            yield output.file
        except OSError as error:
            # Only a failure of this very output is ours to explain: a missing input inside the block is not.
            if error.errno in _FULL:
                raise _explain(error, output.shown) from error
            raise


def _sync_folder(folder: Path) -> None:
    """Make the new name durable where the system can (not on Windows)."""
    flags: Any = getattr(os, "O_DIRECTORY", None)
    if flags is None:
        return
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | flags)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
