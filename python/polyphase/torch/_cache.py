"""Compiled islands on disk, so that the next process need not compile them.

One engine file for each key, in $POLYPHASE_CACHE_DIR (else $XDG_CACHE_HOME/polyphase, else ~/.cache/polyphase), written under a
temporary name and renamed. Of files together larger than $POLYPHASE_CACHE_BYTES (4 GiB) those used longest ago are removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pathlib
from collections.abc import Iterable

from .. import _native
from .._errors import Error
from .._files import write_whole

_DEFAULT_BYTES = 4 << 30


def folder() -> pathlib.Path:
    given = os.environ.get("POLYPHASE_CACHE_DIR")
    if given:
        return pathlib.Path(given)
    base = os.environ.get("XDG_CACHE_HOME")
    return (pathlib.Path(base) if base else pathlib.Path.home() / ".cache") / "polyphase"


def key_of(parts: Iterable[bytes | memoryview]) -> str:
    """Of a program, its weights and its options, for this build on this CPU."""
    digest = hashlib.sha256()
    build = os.stat(_native.__file__)
    for part in (repr((_native.version, build.st_size, build.st_mtime_ns, _native.devices()[0]["cluster"], _native.devices()[0]["features"])).encode(), *parts):
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()


def find(key: str, plugins: list[bytes]) -> _native.Engine | None:
    path = folder() / f"{key}.ppe"
    try:
        engine = _native.load(os.fsencode(path), plugins)
        os.utime(path)
        return engine
    except Error as error:
        if error.code not in ("io", "out_of_memory"):  # damaged: the next one is whole
            with contextlib.suppress(OSError):
                path.unlink()
    except OSError:
        pass
    return None


def store(key: str, engine: _native.Engine) -> None:
    """A disk that is full or may not be written costs nothing but the next process's time."""
    place = folder()
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(place / f"{key}.ppe", engine.to_bytes(), private=True)
        _shrink(place)
    except OSError:
        pass


def _shrink(place: pathlib.Path) -> None:
    try:
        most = int(os.environ.get("POLYPHASE_CACHE_BYTES", _DEFAULT_BYTES))
    except ValueError:
        most = _DEFAULT_BYTES
    files = []
    for path in place.glob("*.ppe"):
        with contextlib.suppress(OSError):  # another process removed it
            found = path.stat()
            files.append((found.st_mtime_ns, found.st_size, path))
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files)[:-1]:
        if total <= most:
            return
        with contextlib.suppress(OSError):
            path.unlink()
        total -= size
