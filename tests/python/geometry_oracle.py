"""Random transposed convolutions with the right answer: the independent oracle behind the geometry test.

Each line that this prints is one case: its geometry, the seed of its integer-valued data, and a 64-bit sum over the right output, computed
by PyTorch in float64 (exact on these integers). `geometry_test` reads the lines, makes the same data, runs every kernel of every
instruction cluster that this CPU has, and compares. A printed line reproduces a case alone.

    python tests/python/geometry_oracle.py --count 1000 --seed 7 | build/dev/tests/geometry/geometry_test -

The line:  seed=… rank=… n=… cin=… cout=… groups=… in=AxB k=… s=… d=… pre=… post=… bias=0|1 out=… sum=HEX
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
import torch

MASK = (1 << 32) - 1


def integers(count: int, seed: int, salt: int) -> np.ndarray:
    """Small integers from -3 to 3: the high bits of a multiplicative hash of the index."""
    index = np.arange(count, dtype=np.uint64) * np.uint64(2654435761) + np.uint64((seed * 40503 + salt * 7919) & MASK)
    index &= np.uint64(MASK)
    index ^= index >> np.uint64(15)
    index = (index * np.uint64(2246822519)) & np.uint64(MASK)
    return ((index >> np.uint64(13)) % np.uint64(7)).astype(np.int64) - 3


def output_sum(output: np.ndarray) -> int:
    """A position-dependent sum modulo 2^64, so that moved or swapped elements show."""
    values = output.reshape(-1).astype(np.int64).astype(np.uint64)
    weights = np.arange(values.size, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0xD1B54A32D192ED03)
    with np.errstate(over="ignore"):
        return int(((values + np.uint64(1)) * weights).sum(dtype=np.uint64))


def choose(rng: np.random.Generator) -> dict:
    """One legal geometry. Small enough to be quick, varied enough to meet every tail, phase and border."""
    rank = int(rng.choice([1, 2, 2, 3]))
    limit = {1: 40, 2: 12, 3: 6}[rank]
    kernel_limit = {1: 17, 2: 7, 3: 4}[rank]
    shape = {"rank": rank, "n": int(rng.choice([0, 1, 1, 1, 2, 3], p=[0.02, 0.3, 0.28, 0.2, 0.15, 0.05]))}
    groups = int(rng.choice([1, 1, 1, 2, 3, 4, 8, 16, 17]))
    kind = rng.random()
    if kind < 0.2:  # depthwise, with a multiplier
        groups = int(rng.integers(1, 36))
        shape["cin"], shape["cout"] = groups, groups * int(rng.choice([1, 1, 1, 2, 3]))
    else:
        channels = [1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 24, 31, 32, 33, 48, 64, 70]
        limits = [c for c in channels if c * groups <= 96]
        shape["cin"], shape["cout"] = groups * int(rng.choice(limits)), groups * int(rng.choice(limits))
    shape["groups"] = groups
    same = rng.random() < 0.5  # cubic
    for name, low, high in (("in", 1, limit), ("k", 1, kernel_limit), ("s", 1, 5), ("d", 1, 4)):
        values = rng.integers(low, high + 1, size=rank)
        if name == "d" and rng.random() < 0.7:
            values[:] = 1
        shape[name] = [int(values[0])] * rank if same else [int(v) for v in values]
    if rng.random() < 0.3:  # k = s, k = 2s
        shape["k"] = [s * int(rng.choice([1, 2])) for s in shape["s"]]
    shape["pre"], shape["post"] = [], []
    for i, k, s, d in zip(shape["in"], shape["k"], shape["s"], shape["d"]):
        natural = (i - 1) * s + d * (k - 1) + 1
        mode = rng.random()
        if mode < 0.5:  # PyTorch's own parameters
            padding = int(rng.integers(0, min(d * (k - 1) + 3, 12)))
            extra = int(rng.integers(0, max(s, d)))
            pre, post = padding, padding - extra
        else:  # any crop, also growing
            pre, post = int(rng.integers(-3, 6)), int(rng.integers(-3, 6))
        if natural - pre - post < 1:
            pre, post = 0, 0
        shape["pre"].append(pre)
        shape["post"].append(post)
    shape["bias"] = int(rng.random() < 0.5)
    return shape


def cropped(natural: np.ndarray, pre: list[int], post: list[int]) -> np.ndarray:
    """Element o of the result is element o + pre of the natural output, or 0 where that lies outside."""
    sizes = [size - a - b for size, a, b in zip(natural.shape[2:], pre, post)]
    result = np.zeros([*natural.shape[:2], *sizes])
    source, target = [slice(None)] * 2, [slice(None)] * 2
    for size, a, out in zip(natural.shape[2:], pre, sizes):
        first, last = max(0, -a), min(out, size - a)
        target.append(slice(first, max(first, last)))
        source.append(slice(first + a, max(first, last) + a))
    result[tuple(target)] = natural[tuple(source)]
    return result


def answer(shape: dict, seed: int) -> np.ndarray:
    """The output in float64: natural size by PyTorch, then crop or grow, then bias."""
    groups = shape["groups"]
    x_sizes = [shape["n"], shape["cin"], *shape["in"]]
    w_sizes = [shape["cin"], shape["cout"] // groups, *shape["k"]]
    x = torch.from_numpy(integers(int(np.prod(x_sizes)), seed, 1).astype(np.float64).reshape(x_sizes))
    w = torch.from_numpy(integers(int(np.prod(w_sizes)), seed, 2).astype(np.float64).reshape(w_sizes))
    function = {1: torch.nn.functional.conv_transpose1d, 2: torch.nn.functional.conv_transpose2d, 3: torch.nn.functional.conv_transpose3d}[shape["rank"]]
    if shape["n"] == 0:
        natural = [(i - 1) * s + d * (k - 1) + 1 for i, k, s, d in zip(shape["in"], shape["k"], shape["s"], shape["d"])]
        y = torch.zeros([0, shape["cout"], *natural], dtype=torch.float64)
    else:
        y = function(x, w, stride=shape["s"], dilation=shape["d"], groups=groups)
    y = cropped(y.numpy(), shape["pre"], shape["post"])
    if shape["bias"]:
        y = y + integers(shape["cout"], seed, 3).reshape([1, -1] + [1] * shape["rank"])
    return y


def line(shape: dict, seed: int) -> str:
    y = answer(shape, seed)
    joined = {name: "x".join(str(v) for v in shape[name]) for name in ("in", "k", "s", "d", "pre", "post")}
    fields = [f"seed={seed}"] + [f"{name}={shape[name]}" for name in ("rank", "n", "cin", "cout", "groups")]
    fields += [f"{name}={text}" for name, text in joined.items()]
    fields += [f"bias={shape['bias']}", "out=" + "x".join(str(v) for v in y.shape[2:]), f"sum={output_sum(y):016x}"]
    return " ".join(fields)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1, help="the first case's seed; case i has seed + i")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for seed in range(options.seed, options.seed + options.count):
        print(line(choose(np.random.default_rng(seed)), seed))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
