"""The options of torch.compile(..., backend="polyphase", options={...})."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import pathlib
from collections.abc import Mapping
from typing import Any

from .. import _native
from .._errors import ArgumentError
from .._options import path_bytes, plugin_paths
from . import _converters


@dataclasses.dataclass(frozen=True)
class Plugins:
    """Libraries of operators, and what they claim of PyTorch's."""

    paths: tuple[str, ...] = ()
    claimed: frozenset[str] = frozenset()  # "stylegan.upfirdn2d.default"
    digest: bytes = b""  # of the files

    @staticmethod
    def of(given: Any) -> Plugins:
        paths = plugin_paths(given)
        if not paths:
            return Plugins()
        claims = _native.torch_claims(paths)
        digest = hashlib.sha256()
        for path in paths:
            digest.update(hashlib.sha256(pathlib.Path(os.fsdecode(path)).read_bytes()).digest())
        for claim in claims:
            if claim in _converters.taken():
                raise ArgumentError(f"a plugin claims {claim}, which Polyphase converts itself.", hint="Give the operator a library of its own, in the plugin and in the model.")
            if claims.count(claim) > 1:
                raise ArgumentError(f"{claim} is claimed twice by the plugins.", hint="Give one of them.")
        return Plugins(tuple(map(os.fsdecode, paths)), frozenset(claims), digest.digest())


@dataclasses.dataclass(frozen=True)
class Settings:
    require_full: bool = False
    min_block_size: int | None = None
    torch_executed_ops: frozenset[str] = frozenset()
    cache: bool = True
    precision: str = "model"
    tune: bool = False
    timing_cache: str | None = None
    plugins: Plugins = Plugins()

    @staticmethod
    def of(options: Mapping[str, Any] | None, others: Mapping[str, Any]) -> Settings:
        if others:
            names = ", ".join(sorted(others))
            raise ArgumentError(f"torch.compile was given {names}, which this backend does not know.", hint='Give options={"min_block_size": 3, …}.')
        given = dict(options or {})
        known = [field.name for field in dataclasses.fields(Settings)]
        for name in given:
            if name not in known:
                raise ArgumentError(f"there is no option '{name}'.", hint="Options are require_full, min_block_size, torch_executed_ops, cache, precision, tune, timing_cache and plugins.")
        for name in ("require_full", "cache", "tune"):
            if not isinstance(given.get(name, False), bool):
                value = given[name]
                raise ArgumentError(f"the option {name} is {value!r:.60}.", hint="Give True or False.")
        if not isinstance(precision := given.get("precision", "model"), str):
            raise ArgumentError(f"the option precision is {precision!r:.60}.", hint="Give 'model', 'fp32' or 'auto'.")
        block = given.get("min_block_size")
        if block is not None and (isinstance(block, bool) or not isinstance(block, int) or block < 1):
            raise ArgumentError(f"the option min_block_size is {block!r:.60}.", hint="Give a number of operators, 1 or more.")
        left = given.get("torch_executed_ops", ())
        if isinstance(left, str) or not isinstance(left, (list, tuple, set, frozenset)):
            raise ArgumentError(f"the option torch_executed_ops is {left!r:.60}.", hint='Give a list of overloads: ["aten.relu.default"].')
        if (timings := given.get("timing_cache")) is not None:
            if not given.get("tune", False):
                raise ArgumentError("the option timing_cache is given without tune.", hint='Give options={"tune": True, "timing_cache": …}.')
            given["timing_cache"] = os.fsdecode(path_bytes(timings))
        given["plugins"] = Plugins.of(given.get("plugins", ()))
        return Settings(**{**given, "torch_executed_ops": frozenset(map(str, left))})
