"""Files that are written whole or not at all: under a temporary name beside their place, then renamed."""

from __future__ import annotations

import contextlib
import os
import pathlib
import tempfile


def write_whole(place: pathlib.Path, data: bytes, *, private: bool) -> None:
    """private: for this user alone; else as the process's mask says. Raises OSError, and leaves no part behind."""
    handle, name = tempfile.mkstemp(prefix=".", suffix=".part", dir=place.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        if not private:
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(name, 0o666 & ~mask)
        os.replace(name, place)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
