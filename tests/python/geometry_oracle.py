"""Random transposed convolutions with the right answer: the independent oracle behind the geometry test.

Each line that this prints is one case: its geometry, the seed of its integer-valued data, and a 64-bit sum over the right output, computed
by PyTorch in float64 (exact on these integers). `geometry_test` reads the lines, makes the same data, runs every kernel of every
instruction cluster that this CPU has, and compares. A printed line reproduces a case alone.

    python tests/python/geometry_oracle.py --count 1000 --seed 7 | build/dev/tests/geometry/geometry_test -

The line:  seed=… rank=… n=… cin=… cout=… groups=… in=AxB k=… s=… d=… pre=… post=… bias=0|1 out=… sum=HEX
"""

from __future__ import annotations

import argparse
import os
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


CHANNELS = [1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65, 70]
# How large a case may be: (share, longest axis by rank, multiply-adds, elements of the natural output).
CLASSES = [
    (0.80, {1: 40, 2: 12, 3: 6}, 400_000, 60_000),
    (0.17, {1: 400, 2: 32, 3: 11}, 2_000_000, 200_000),
    (0.03, {1: 6000, 2: 90, 3: 24}, 12_000_000, 600_000),  # several tiles and blocks
]


def choose(rng: np.random.Generator) -> dict:
    """One legal geometry. Small enough to be quick, varied enough to meet every tail, phase and border."""
    rank = int(rng.choice([1, 2, 2, 3]))
    _, longest, most_work, most_elements = CLASSES[rng.choice(len(CLASSES), p=[share for share, *_ in CLASSES])]
    kernel_limit = {1: 17, 2: 7, 3: 4}[rank]
    shape = {"rank": rank, "n": int(rng.choice([0, 1, 2, 3, 5], p=[0.02, 0.7, 0.2, 0.06, 0.02]))}
    choose_channels(rng, shape)
    same = rng.random() < 0.5  # cubic
    for name, low, high in (("in", 1, longest[rank]), ("k", 1, kernel_limit), ("s", 1, 5), ("d", 1, 4)):
        values = rng.integers(low, high + 1, size=rank)
        if name == "d" and rng.random() < 0.7:
            values[:] = 1
        shape[name] = [int(values[0])] * rank if same else [int(v) for v in values]
    if rng.random() < 0.3:  # k = s, k = 2s
        shape["k"] = [s * int(rng.choice([1, 2])) for s in shape["s"]]
    while work(shape) > most_work or shape["n"] * shape["cout"] * int(np.prod(natural_sizes(shape))) > most_elements:
        shrink(rng, shape)
    if rng.random() < 0.01:
        shape["in"][int(rng.integers(rank))] = 0
    shape["pre"], shape["post"] = [], []
    own = rng.random() < 0.5  # PyTorch's own parameters on every axis, else any crop
    for natural, k, s, d in zip(natural_sizes(shape), shape["k"], shape["s"], shape["d"]):
        if own:
            padding = int(rng.integers(0, min(d * (k - 1) + 3, 12)))
            extra = int(rng.integers(0, max(s, d)))
            pre, post = padding, padding - extra
        else:  # also growing, also far into the natural output
            pre, post = int(rng.integers(-3, 6)), int(rng.integers(-3, 6))
            if rng.random() < 0.1:
                pre = int(rng.integers(0, max(natural, 1)))
        least = 0 if rng.random() < 0.02 else 1
        if natural - pre - post < least:
            pre, post = 0, min(0, natural - least)
        shape["pre"].append(pre)
        shape["post"].append(post)
    shape["bias"] = int(rng.random() < 0.5)
    return shape


def choose_channels(rng: np.random.Generator, shape: dict) -> None:
    groups = int(rng.choice([1, 1, 1, 2, 3, 4, 8, 16, 17]))
    kind = rng.random()
    if kind < 0.2:  # depthwise, with a multiplier
        groups = int(rng.integers(1, 70))
        shape["cin"], shape["cout"] = groups, groups * int(rng.choice([1, 1, 1, 2, 3]))
    elif kind < 0.22:  # sums that are split, many output channels
        groups = int(rng.choice([1, 2]))
        shape["cin"], shape["cout"] = groups * int(rng.integers(100, 600)), groups * int(rng.integers(1, 200))
    else:
        limits = [c for c in CHANNELS if c * groups <= 96]
        shape["cin"], shape["cout"] = groups * int(rng.choice(limits)), groups * int(rng.choice(limits))
    shape["groups"] = groups


def natural_sizes(shape: dict) -> list[int]:
    """What the taps reach: (I - 1) s + d (k - 1) + 1 on each axis."""
    return [(i - 1) * s + d * (k - 1) + 1 for i, k, s, d in zip(shape["in"], shape["k"], shape["s"], shape["d"])]


def work(shape: dict) -> int:
    return shape["n"] * shape["cin"] * shape["cout"] // shape["groups"] * int(np.prod(shape["in"])) * int(np.prod(shape["k"]))


def shrink(rng: np.random.Generator, shape: dict) -> None:
    """Makes the longest axis shorter, or where the axes are short the channels fewer."""
    longest = int(np.argmax(shape["in"]))
    if shape["in"][longest] > 4 or (shape["in"][longest] > 1 and rng.random() < 0.5):
        shape["in"][longest] -= max(1, shape["in"][longest] // 4)
    elif shape["cin"] > shape["groups"] or shape["cout"] > shape["groups"]:
        name = "cin" if shape["cin"] >= shape["cout"] else "cout"
        shape[name] = shape["groups"] * max(1, shape[name] // shape["groups"] // 2)
    elif shape["groups"] > 1:
        shape["groups"] = shape["cin"] = shape["cout"] = shape["groups"] // 2
    else:
        shape["n"], shape["k"] = 1, [max(1, k // 2) for k in shape["k"]]


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
    """The output in float64. By PyTorch alone where its parameters can say it; else its natural output, cropped or grown, then bias."""
    groups, rank = shape["groups"], shape["rank"]
    x_sizes = [shape["n"], shape["cin"], *shape["in"]]
    w_sizes = [shape["cin"], shape["cout"] // groups, *shape["k"]]
    bias = integers(shape["cout"], seed, 3).astype(np.float64) * shape["bias"]
    if 0 in x_sizes:  # PyTorch refuses some of these: nothing but the bias arrives
        sizes = [size - a - b for size, a, b in zip(natural_sizes(shape), shape["pre"], shape["post"])]
        return np.zeros([shape["n"], shape["cout"], *sizes]) + bias.reshape([1, -1] + [1] * rank)
    x = torch.from_numpy(integers(int(np.prod(x_sizes)), seed, 1).astype(np.float64).reshape(x_sizes))
    w = torch.from_numpy(integers(int(np.prod(w_sizes)), seed, 2).astype(np.float64).reshape(w_sizes))
    function = {1: torch.nn.functional.conv_transpose1d, 2: torch.nn.functional.conv_transpose2d, 3: torch.nn.functional.conv_transpose3d}[rank]
    extra = [a - b for a, b in zip(shape["pre"], shape["post"])]
    sizes = [size - a - b for size, a, b in zip(natural_sizes(shape), shape["pre"], shape["post"])]
    if min(sizes) > 0 and min(shape["pre"]) >= 0 and all(0 <= e < max(s, d) for e, s, d in zip(extra, shape["s"], shape["d"])):
        return function(x, w, torch.from_numpy(bias), stride=shape["s"], padding=shape["pre"], output_padding=extra, groups=groups,
                        dilation=shape["d"]).numpy()
    natural = function(x, w, stride=shape["s"], dilation=shape["d"], groups=groups).numpy()
    return cropped(natural, shape["pre"], shape["post"]) + bias.reshape([1, -1] + [1] * rank)


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
    try:
        for seed in range(options.seed, options.seed + options.count):
            print(line(choose(np.random.default_rng(seed)), seed))
        sys.stdout.flush()
    except BrokenPipeError:  # the reader's time was up
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
