"""The options of torch.compile(..., backend="polyphase", options={...})."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

from .._errors import ArgumentError
from .._options import path_bytes


@dataclasses.dataclass(frozen=True)
class Settings:
    require_full: bool = False
    min_block_size: int | None = None
    torch_executed_ops: frozenset[str] = frozenset()
    cache: bool = True
    precision: str = "model"
    tune: bool = False
    timing_cache: str | None = None

    @staticmethod
    def of(options: Mapping[str, Any] | None, others: Mapping[str, Any]) -> Settings:
        if others:
            names = ", ".join(sorted(others))
            raise ArgumentError(f"torch.compile was given {names}, which this backend does not know.", hint='Give options={"min_block_size": 3, …}.')
        given = dict(options or {})
        known = [field.name for field in dataclasses.fields(Settings)]
        for name in given:
            if name not in known:
                raise ArgumentError(f"there is no option '{name}'.", hint="Options are require_full, min_block_size, torch_executed_ops, cache, precision, tune and timing_cache.")
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
        return Settings(**{**given, "torch_executed_ops": frozenset(map(str, left))})
