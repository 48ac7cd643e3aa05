"""examples/upfirdn2d as the tests use it: the library built from its one file, and the same operator in plain PyTorch."""

from __future__ import annotations

import functools
import pathlib
import subprocess
import tempfile

import torch
from torch.nn import functional

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCE = ROOT / "examples/upfirdn2d/upfirdn2d.c"


def build(source: pathlib.Path, into: pathlib.Path, *flags: str) -> pathlib.Path:
    """A plugin out of one C file, as the guide's command line builds it."""
    subprocess.run(["cc", "-std=c99", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-shared", "-fPIC", f"-I{ROOT / 'include'}", *flags, str(source), "-o", str(into), "-lm"], check=True)
    return into


@functools.cache
def library() -> pathlib.Path:
    return build(SOURCE, pathlib.Path(tempfile.mkdtemp(prefix="plugin")) / "upfirdn2d.so")


def four(padding: list[int]) -> list[int]:
    return padding * 4 if len(padding) == 1 else [padding[0]] * 2 + [padding[1]] * 2 if len(padding) == 2 else padding


def reference(x: torch.Tensor, f: torch.Tensor | None, up: list[int] = [1], down: list[int] = [1], padding: list[int] = [0],
              flip_filter: bool = False, gain: float = 1.0) -> torch.Tensor:
    """Zeros between the pixels, zeros or cropping around them, a convolution per channel, every down-th pixel; in float64."""
    n, c, height, width = x.shape
    (up_x, up_y), (down_x, down_y) = (pair * 2 if len(pair) == 1 else pair for pair in (up, down))
    z = x.new_zeros(n, c, height * up_y, width * up_x, dtype=torch.float64)
    z[:, :, ::up_y, ::up_x] = x.double()
    left, right, top, bottom = four(padding)
    z = functional.pad(z, [left, right, top, bottom])  # which crops where they are negative
    f = torch.ones(1, 1) if f is None else torch.outer(f, f) if f.ndim == 1 else f
    f = f.double() if flip_filter else f.double().flip([0, 1])
    y = functional.conv2d(z, (f * gain)[None, None].repeat(c, 1, 1, 1), groups=c)
    return y[:, :, ::down_y, ::down_x].to(x.dtype)


@functools.cache
def torch_operator():
    """The operator as PyTorch's users define one: a function, and what it gives for tensors without elements."""
    @torch.library.custom_op("stylegan::upfirdn2d", mutates_args=())
    def upfirdn2d(x: torch.Tensor, f: torch.Tensor | None, up: list[int], down: list[int], padding: list[int],
                  flip_filter: bool = False, gain: float = 1.0) -> torch.Tensor:
        return reference(x, f, up, down, padding, flip_filter, gain).contiguous()

    @upfirdn2d.register_fake
    def _(x, f, up, down, padding, flip_filter=False, gain=1.0):
        rows, columns = (1, 1) if f is None else (f.shape[0], f.shape[-1])
        left, right, top, bottom = four(padding)
        (up_x, up_y), (down_x, down_y) = (pair * 2 if len(pair) == 1 else pair for pair in (up, down))
        return x.new_empty(x.shape[0], x.shape[1], (x.shape[2] * up_y + top + bottom - rows) // down_y + 1,
                           (x.shape[3] * up_x + left + right - columns) // down_x + 1)

    return upfirdn2d
