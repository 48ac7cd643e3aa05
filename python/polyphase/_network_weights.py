"""Weights of a Network by name: a state_dict, an .npz archive, a safetensors file."""

from __future__ import annotations

import difflib
import os
import zipfile
import zlib
from typing import TYPE_CHECKING, Any

from . import _native
from ._arrays import weights_of
from ._errors import ArgumentError, ModelError
from ._options import is_path, path_bytes

if TYPE_CHECKING:
    from ._network import Network, Tensor


class Weights:
    """Where Network.weight finds its tensors. Nothing is read before it is asked for."""

    def __init__(self, source: Any):
        self._made: dict[str, Tensor] = {}
        self._file: _native.WeightFile | None = None
        self._arrays: Any = None
        self._names: list[str] | None = None
        if source is None:
            return
        if not is_path(source):
            self._arrays = source if hasattr(source, "files") else weights_of(source)  # an NpzFile reads when asked
        elif _is_archive(source):
            self._arrays = _archive(source)
        else:
            self._file = _native.WeightFile.open(path_bytes(source))
        self._names = self._file.names() if self._file is not None else list(self._arrays)

    def constant(self, network: Network, name: str) -> Tensor:
        from ._network import Tensor

        if not isinstance(name, str):
            raise ArgumentError(f"the name of a weight is a {type(name).__name__}.", hint="Give a str.")
        if name in self._made:
            return self._made[name]
        if self._names is None:
            raise ArgumentError(f"the network has no weights, so none named '{name}'.", hint="Give them: Network(weights=...).")
        if name not in self._names:
            near = difflib.get_close_matches(name, self._names, n=3, cutoff=0.3)
            raise ArgumentError(f"there is no weight named '{name}' among the {len(self._names)} that were given.",
                                hint=f"Names like it: {', '.join(near) or 'none'}.")
        if self._file is not None:
            made = Tensor(network, network._native.add_weight(self._file, name))
        else:
            made = network.add_constant(self._array(name), name)
        self._made[name] = made
        return made


    def _array(self, name: str) -> Any:
        try:
            return self._arrays[name]
        except _DAMAGE as said:
            raise ModelError(f"the weight '{name}' cannot be read: {said}", "corrupt", hint="Write the archive again with numpy.savez, of plain arrays.") from None


_DAMAGE = (ValueError, EOFError, zipfile.BadZipFile, zlib.error)  # what NumPy and zipfile say of an archive


def _archive(path: Any) -> Any:
    import numpy as np

    try:
        found = np.load(path)
    except _DAMAGE as said:
        raise ModelError(f"'{os.fsdecode(path)}' is no archive that can be read: {said}", "corrupt", hint="Copy it again, or write it again with numpy.savez.") from None
    if any(name.endswith("/data.pkl") or name == "data.pkl" for name in found.files):
        raise ModelError(f"'{os.fsdecode(path)}' is a file of torch.save.", "invalid_model", hint="Give Network(weights=torch.load(path)), or save it as safetensors.")
    return found


def _is_archive(path: Any) -> bool:
    """A zip archive, as .npz is; else the reader of safetensors says what is wrong."""
    try:
        with open(path, "rb") as file:
            return file.read(2) == b"PK"
    except OSError:
        return False
