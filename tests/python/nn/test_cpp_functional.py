"""polyphase/nn_functional.h against polyphase.nn.functional: the same calls write the same networks, or are refused in the same words.

What the networks compute is tested against PyTorch on Python's side (test_functional.py); here both sides are one.
"""

from __future__ import annotations

import inspect
import json
import os
import pathlib
import re
import subprocess

import numpy as np
import polyphase
import polyphase.nn.functional as F
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAM = pathlib.Path(os.environ.get("POLYPHASE_BUILD", ROOT / "build/release")).resolve() / "tests/api/nn_calls"
DTYPES = {"u8": "uint8", "u64": "uint64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "f64": "float64", "i64": "int64", "i32": "int32", "i8": "int8", "bool": "bool"}


class In:
    """An input of a call's network: its sizes, and its dtype by the name that the text form has."""

    def __init__(self, *sizes, dtype="f32"):
        self.sizes, self.dtype = sizes, dtype


def described(calls) -> str:
    """(function, arguments) as nn_calls reads them."""
    out = []
    for function, arguments in calls:
        inputs: list[In] = []

        def plain(given, inputs=inputs):
            if isinstance(given, In):
                inputs.append(given)
                return {"t": len(inputs) - 1}
            return [plain(one) for one in given] if isinstance(given, (list, tuple)) else given

        plain_arguments = {name: plain(given) for name, given in arguments.items()}
        out.append({"f": function, "arguments": plain_arguments, "inputs": [{"dtype": one.dtype, "sizes": [str(size) for size in one.sizes]} for one in inputs]})
    return json.dumps(out)


def in_cpp(calls) -> list[dict]:
    done = subprocess.run([PROGRAM], input=described(calls), capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


def in_python(function, arguments) -> dict:
    net = polyphase.Network()
    count = 0

    def given(one):
        nonlocal count
        if isinstance(one, In):
            count += 1
            return net.add_input(f"x{count - 1}", DTYPES[one.dtype], one.sizes)
        return [given(part) for part in one] if isinstance(one, (list, tuple)) else one

    settings = {name: given(one) for name, one in arguments.items()}
    if "dtype" in settings:
        settings["dtype"] = DTYPES[settings["dtype"]]
    try:
        with net:
            made = getattr(F, function)(**settings)
        return {"text": net.text(), "results": [one.name for one in (made if isinstance(made, tuple) else (made,))]}
    except polyphase.Error as error:
        return {"message": in_cpp_words(error.message), "hint": in_cpp_words(error.hint or ""), "node": error.node or ""}


def in_cpp_words(text: str) -> str:
    """Values as C++ has them: Size('H') and, in a list, 'H' are H, False is false."""
    text = re.sub(r"Size\('(.*?)'\)", r"\1", text).replace("=False", "=false")
    return re.sub(r"\[[^\]]*\]", lambda found: found[0].replace("'", ""), text)


def without_absent(found: dict) -> dict:
    """Operands that are absent at the end of a list may be written there, as none."""
    return found | {"text": re.sub(r"(?:, none)+\)", ")", found["text"])} if "text" in found else found


def compare(calls, refused=None):
    """Both sides; `refused`: whether every call must be."""
    assert calls
    for (function, arguments), found in zip(calls, in_cpp(calls), strict=True):
        shown = {name: (one.dtype, one.sizes) if isinstance(one, In) else one for name, one in arguments.items()}
        want = in_python(function, arguments)
        assert without_absent(found) == without_absent(want), (function, shown)
        assert refused is None or ("message" in found) == refused, (function, shown, found)


def test_every_function_is_called_here():
    """A function of Python's that C++ has not, or that no call below draws, fails."""
    declared = set(re.findall(r"^Result<[^;=]*?> (\w+)\(", (ROOT / "include/polyphase/nn_functional.h").read_text(), re.MULTILINE))
    assert declared == set(F.__all__)
    drawn = {function for seed in range(25) for function, _ in drawn_calls(seed)}
    assert drawn == set(F.__all__)


# ---------------------------------------------------------------- drawn calls


def sizes_drawn(random, rank, low=1, high=7, symbolic=True):
    return tuple("NCHWD"[i] if symbolic and random.random() < 0.25 else int(random.integers(low, high)) for i in range(rank))


def numbers_drawn(random, spatial, low, high):
    """One number, a list of one, or one for each axis; now and then of a wrong length."""
    kind = random.random()
    if kind < 0.3:
        return int(random.integers(low, high))
    count = 1 if kind < 0.4 else spatial + 1 if kind > 0.97 else spatial
    return [int(random.integers(low, high)) for _ in range(count)]


def some(random, **settings):
    """Each setting is given or left to its default."""
    return {name: draw() for name, draw in settings.items() if random.random() < 0.7}


def windows_drawn(random):
    spatial, groups = int(random.integers(1, 4)), int(random.choice([1, 1, 2, 3]))
    cin, cout = groups * int(random.integers(1, 4)), groups * int(random.integers(1, 4))
    kernel = [int(random.integers(1, 4)) for _ in range(spatial)]
    rank = spatial + int(random.choice([1, 2, 2, 2]))
    sizes = [*sizes_drawn(random, rank - spatial - 1), cin if random.random() < 0.95 else cin + 1, *sizes_drawn(random, spatial, 5, 12)]
    x = In(*sizes)
    bias = {"bias": In(cout)} if random.random() < 0.5 else {}
    common = some(random, stride=lambda: numbers_drawn(random, spatial, 1, 4), padding=lambda: numbers_drawn(random, spatial, 0, 3),
                  dilation=lambda: numbers_drawn(random, spatial, 1, 3))
    yield f"conv{spatial}d", dict(input=x, weight=In(cout, cin // groups, *kernel), **bias, groups=groups, **common)
    common |= some(random, output_padding=lambda: numbers_drawn(random, spatial, 0, 2))
    yield f"conv_transpose{spatial}d", dict(input=x, weight=In(cin, cout // groups, *kernel), **bias, groups=groups, **common)
    yield "avg_pool2d", dict(input=In(*sizes_drawn(random, int(random.choice([3, 4, 4, 5])), 4, 9)), kernel_size=numbers_drawn(random, 2, 0 if random.random() < 0.1 else 1, 4),
                             **some(random, stride=lambda: numbers_drawn(random, 2, 0 if random.random() < 0.1 else 1, 4), padding=lambda: numbers_drawn(random, 2, 0, 2),
                                    ceil_mode=lambda: bool(random.random() < 0.5), count_include_pad=lambda: bool(random.random() < 0.5)))
    spatial = int(random.integers(1, 4))
    mode = str(random.choice(["nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear", ["linear", "bilinear", "trilinear"][spatial - 1]]))
    to = {"size": numbers_drawn(random, spatial, 1, 12)} if random.random() < 0.5 else {"scale_factor": float(random.choice([2, 3, 1.5, 0.7]))}
    yield "interpolate", dict(input=In(*sizes_drawn(random, 2), *sizes_drawn(random, spatial, 2, 9)), mode=mode, **to,
                              **some(random, align_corners=lambda: bool(random.random() < 0.3), recompute_scale_factor=lambda: bool(random.random() < 0.5),
                                     antialias=lambda: bool(random.random() < 0.2)))
    pads = [int(random.integers(-1, 4 if random.random() < 0.8 else 12)) for _ in range(int(random.choice([2, 4, 4, 6, 3])))]
    yield "pad", dict(input=In(*sizes_drawn(random, 3, 4, 9)), pad=pads, **({} if random.random() < 0.3 else {"mode": str(random.choice(["constant", "reflect", "replicate", "circular"])), "value": 1.5}))


def norms_drawn(random):
    dtype = str(random.choice(["f32", "f32", "f16", "bf16"]))
    rank = int(random.integers(2, 5))
    sizes = sizes_drawn(random, rank)
    behind = [size if isinstance(size, int) else 4 for size in sizes[-int(random.integers(1, 3)):]]
    if random.random() < 0.1:
        behind[-1] += 1
    shape = behind[0] if len(behind) == 1 and random.random() < 0.5 else behind
    x = In(*sizes, dtype=dtype)
    yield "layer_norm", dict(input=x, normalized_shape=shape, **some(random, weight=lambda: In(*behind, dtype=dtype), bias=lambda: In(*behind, dtype=dtype), eps=lambda: 1e-3,
                                                                     use_diff_of_squares=lambda: False))
    yield "rms_norm", dict(input=x, normalized_shape=shape, **some(random, weight=lambda: In(*behind, dtype=dtype), eps=lambda: 1e-3))
    channels = int(random.integers(1, 7))
    x = In(*sizes_drawn(random, 1), channels, *sizes_drawn(random, int(random.integers(0, 4))), dtype=dtype)
    vectors = dict(weight=lambda: In(channels, dtype=dtype), bias=lambda: In(channels, dtype=dtype), eps=lambda: 1e-3)
    yield "group_norm", dict(input=x, num_groups=int(random.choice([1, channels, 2])), **some(random, **vectors))
    yield "instance_norm", dict(input=x, **some(random, **vectors))


def axis_drawn(random, rank, wrong=0.03):
    return int(random.integers(-rank, rank)) if random.random() >= wrong else rank


def shapes_drawn(random):
    rank = int(random.integers(1, 5))
    sizes = sizes_drawn(random, rank)
    x = In(*sizes, dtype=str(random.choice(["f32", "f16", "f64", "i64", "u8", "u64", "bool", "i8"])))
    yield "cast", dict(input=x, dtype=str(random.choice(["f32", "f16", "bf16", "bool", "i32", "i8", "f64"])))
    shape = [int(random.choice([0, -1, size])) if isinstance(size, int) and random.random() < 0.5 else size for size in sizes]
    if all(isinstance(size, int) or sizes[i] == size for i, size in enumerate(shape)) and not (0 in shape and -1 in shape and random.random() < 0.5):
        yield "view", dict(input=x, shape=shape)
    yield "view", dict(input=In(2, 6, "H"), shape=[[0, -1], [-1], [2, 3, -1], -1, [12, "H"], ["H", -1], [0, 0, 0, 0], [2, -3], [-1, -1]][int(random.integers(0, 9))])
    yield "view", dict(input=In("N"), shape=In(2, dtype=str(random.choice(["i64", "i32", "f32"]))), **some(random, zero_is_placeholder=lambda: bool(random.random() < 0.5)))
    yield "view", dict(input=In("N", 3), shape=In(*sizes_drawn(random, int(random.choice([1, 1, 2]))), dtype="i64"))
    yield "expand_dims", dict(input=x, dim=axis_drawn(random, rank + 1))
    yield "expand_dims", dict(input=x, dim=[0, axis_drawn(random, rank + 2)])
    yield "expand", dict(input=In(1, 3, 1), expand_shape=[[2, -1, 5], [4, 1, 3, 1], [-1, 1, 3, 1], [3, 1], [-1, -1, "H"], [2, 3, 4]][int(random.integers(0, 6))])
    yield "permute", dict(input=x, dims=[int(axis) - (rank if random.random() < 0.3 else 0) for axis in random.permutation(rank)][: rank if random.random() < 0.9 else 1])
    yield "transpose", dict(input=x, dim0=axis_drawn(random, rank), dim1=axis_drawn(random, rank))
    yield "shape", dict(input=x, **some(random, dim=lambda: axis_drawn(random, rank)))
    yield "arange", dict(start=int(random.integers(-3, 3)), end=int(random.integers(0, 9)), **some(random, dtype=lambda: str(random.choice(["f32", "i64", "i32"]))))
    yield "flip", dict(input=x, dims=[axis_drawn(random, rank)] if random.random() < 0.7 else [0, axis_drawn(random, rank)])
    yield "slice", dict(input=In(5, "H", 6), starts=[int(random.integers(0, 5)), 0, 1], sizes=[int(random.integers(1, 4)), "H", 3])
    size = int(random.integers(1, 7))
    yield "split", dict(tensor=In(3, size), split_size_or_sections=int(random.integers(0, size + 1)), dim=1)
    yield "split", dict(tensor=In(size, "H"), split_size_or_sections=[size - 1, 1 if random.random() < 0.8 else 2], **some(random, dim=lambda: axis_drawn(random, 2)))
    yield "chunk", dict(tensor=In(size, "H"), chunks=int(random.integers(0, 4)), **some(random, dim=lambda: axis_drawn(random, 2)))


def choices_drawn(random):
    rank = int(random.integers(1, 4))
    sizes = sizes_drawn(random, rank)
    x = In(*sizes)
    indices = [int(random.integers(-4, 4)), In(1, dtype="i64"), In(dtype="i64"), In(3, dtype="i64")]
    yield "select", dict(input=x, dim=axis_drawn(random, rank), index=indices[int(random.integers(0, 3))])
    yield "index_select", dict(input=x, dim=axis_drawn(random, rank), index=indices[int(random.integers(1, 4))])
    yield "gather", dict(input=x, dim=axis_drawn(random, rank), indices=[1, In(*[2] * rank, dtype="i64"), In(*[2] * (rank + 1), dtype="i32")][int(random.integers(0, 3))])
    yield "where", dict(condition=In(*sizes, dtype="bool"), input=x, other=[In(1), 2.5, 3][int(random.integers(0, 3))])
    whole = int(random.integers(0, 9))
    yield "concat", dict(inputs=[In(2, dtype="i32"), In(dtype="i32"), whole, True])
    yield "concat", dict(inputs=[whole, In(2), 1.5])
    yield "concat", dict(inputs=[In(2, 3), In(2, 3)], dim=axis_drawn(random, 2))


def math_drawn(random):
    rank = int(random.integers(1, 5))
    x = In(*sizes_drawn(random, rank))
    yield "softmax", dict(input=x, **some(random, dim=lambda: axis_drawn(random, rank)))
    for name in ("mean", "max"):
        dim = axis_drawn(random, rank) if random.random() < 0.5 else [0, axis_drawn(random, rank)]
        yield name, dict(input=x, dim=dim, **some(random, keepdim=lambda: bool(random.random() < 0.7)))
    yield "argmax", dict(input=x, dim=axis_drawn(random, rank), **some(random, keepdim=lambda: bool(random.random() < 0.7)))
    a, b, n, m, k = sizes_drawn(random, 1)[0], int(random.integers(1, 4)), *(int(random.integers(1, 6)) for _ in range(3))
    flags = {"transa": bool(random.random() < 0.5), "transb": bool(random.random() < 0.5)}
    yield "matmul", dict(input=In(a, *((k, n) if flags["transa"] else (n, k))), mat2=In(b if random.random() < 0.2 else a, *((m, k) if flags["transb"] else (k, m))), **flags)
    yield "matmul", dict(input=In(k), mat2=In(k), **some(random, transa=lambda: True))
    yield "linear", dict(input=In(*sizes_drawn(random, 2), k), weight=In(m, k if random.random() < 0.9 else k + 1), **some(random, bias=lambda: In(m)))
    yield "linear", dict(input=In(k), weight=In(m, k, 1))
    yield "embedding", dict(input=In(*sizes_drawn(random, 2), dtype="i64"), weight=In(m, k) if random.random() < 0.8 else In(m))
    yield "softplus", dict(input=x, **some(random, beta=lambda: float(random.choice([0.5, 1, 2, 0])), threshold=lambda: 5.0))
    yield "gelu", dict(input=x, **some(random, approximate=lambda: str(random.choice(["none", "tanh"]))))
    yield "clip", dict(input=x, alpha=-1.0, beta=2.5)
    for name in ("mish", "silu", "relu", "sigmoid", "tanh", "round", "sqrt", "exp", "log", "sin", "cos", "abs"):
        yield name, dict(input=x)
    for name in ("add", "sub", "mul", "div", "pow", "minimum", "maximum", "gt", "lt", "eq"):
        dtypes = [str(random.choice(["f32", "i64", "f16"])) for _ in range(2)]
        left, right = In(*x.sizes, dtype=dtypes[0]), In(*x.sizes[1:], dtype=dtypes[1])
        kind = random.random()
        yield name, dict(left=left if kind > 0.2 else int(random.integers(1, 4)), right=right if kind <= 0.2 or kind > 0.5 else [2, 1.5, True][int(random.integers(0, 3))])
    for name in ("op_and", "op_or"):
        yield name, dict(left=In(*x.sizes, dtype="bool"), right=In(*x.sizes, dtype="bool"))


EQUATIONS = ["ij,jk->ik", "bij,bjk->bik", "bhqd,bhkd->bhqk", "ij->ji", "ij->", "i,j->ij", "ij,jk,kl->il", "abc,cd->dab", "ij,ij->i", "ij,jk", "abc,b->ac", "ij, jk -> k", "ba,cb",
             "ijj->i", "ij->ijk", "ij->ii", "i.j->i"]


def einsums_drawn(random):
    for equation in EQUATIONS:
        sizes = {letter: int(random.integers(1, 6)) if random.random() < 0.8 else letter.upper() for letter in "abcdhijklq"}
        words = equation.replace(" ", "").split("->")[0].split(",")
        yield "einsum", dict(einsum_eq=equation, inputs=[In(*[sizes.get(letter, 2) for letter in word]) for word in words])
    yield "einsum", dict(einsum_eq="ij,jk->ik", inputs=[In(2, 3)])
    yield "einsum", dict(einsum_eq="ijk->i", inputs=[In(2, 3)])


def drawn_calls(seed):
    random = np.random.default_rng(seed)
    return [call for draw in (windows_drawn, norms_drawn, shapes_drawn, choices_drawn, math_drawn, einsums_drawn) for call in draw(random)]


@pytest.mark.parametrize("block", range(8))
def test_drawn_calls(block):
    """Both sides write the same, or refuse the same: in the text form, names of layers and casts included."""
    compare([call for seed in range(25) for call in drawn_calls(25 * block + seed)])


# ---------------------------------------------------------------- refusals


X = In(2, 6, 4)


def test_refusals_are_in_the_same_words():
    compare([
        ("cast", dict(input=X, dtype="f64")), ("view", dict(input=X, shape=[-1, -1])), ("view", dict(input=X, shape=[2, 3, 4, 0])), ("view", dict(input=X, shape=[2, -2])), ("view", dict(input=X, shape=[0, -1], zero_is_placeholder=False)),
        ("view", dict(input=X, shape=In(2, 2, dtype="i64"))), ("split", dict(tensor=X, split_size_or_sections=4, dim=1)), ("split", dict(tensor=X, split_size_or_sections=[1, 2], dim=1)),
        ("split", dict(tensor=In("N", 2), split_size_or_sections=1)), ("chunk", dict(tensor=X, chunks=4, dim=1)), ("chunk", dict(tensor=In("N"), chunks=2)),
        ("conv_transpose1d", dict(input=X, weight=In(6, 2, 3), stride=2, output_padding=2)), ("conv2d", dict(input=In(1, 1, 2, 6, 4), weight=In(2, 1, 3, 3))),
        ("conv1d", dict(input=X, weight=In(2, 5, 3))), ("conv1d", dict(input=X, weight=In(2, 6, 3), stride=[1, 2])), ("conv_transpose2d", dict(input=X, weight=In(2, 6, 3))),
        ("avg_pool2d", dict(input=X, kernel_size=2, padding=2)), ("avg_pool2d", dict(input=In(3), kernel_size=2)), ("group_norm", dict(input=X, num_groups=4)),
        ("group_norm", dict(input=In(2, 6), num_groups=2)), ("instance_norm", dict(input=In(2, 6))), ("layer_norm", dict(input=X, normalized_shape=5)),
        ("rms_norm", dict(input=X, normalized_shape=[6, 5])), ("interpolate", dict(input=X)), ("interpolate", dict(input=X, size=3, scale_factor=2.0)),
        ("interpolate", dict(input=X, size=3, mode="bilinear")), ("interpolate", dict(input=X, size=3, mode="lanczos")), ("interpolate", dict(input=X, size=3, align_corners=True)),
        ("interpolate", dict(input=X, size=3, mode="linear", antialias=True)), ("interpolate", dict(input=X, size=[3, 4])), ("interpolate", dict(input=X, scale_factor=[2.0, 3.0])),
        ("interpolate", dict(input=X, scale_factor=-1.0)), ("interpolate", dict(input=In(1, 1, "H"), scale_factor=1.5)), ("gather", dict(input=X, dim=0, indices=In(1, dtype="i64"))),
        ("transpose", dict(input=X, dim0=0, dim1=3)), ("permute", dict(input=X, dims=[0, 1])), ("permute", dict(input=X, dims=[0, 1, -2])), ("expand", dict(input=X, expand_shape=[6, 4])),
        ("expand", dict(input=X, expand_shape=[-1, 2, 6, 4])), ("select", dict(input=X, dim=1, index=6)), ("index_select", dict(input=X, dim=1, index=In(1, 1, dtype="i64"))),
        ("pad", dict(input=X, pad=[1])), ("pad", dict(input=X, pad=[1, 1], mode="mirror", value=0.0)),
        ("arange", dict(start=3, end=1)), ("embedding", dict(input=In(2, dtype="i64"), weight=In(3))), ("linear", dict(input=X, weight=In(4))), ("matmul", dict(input=In(4), mat2=In(4), transa=True)),
        ("softplus", dict(input=X, beta=0.0)), ("einsum", dict(einsum_eq="ijj->i", inputs=[X])), ("einsum", dict(einsum_eq="ij->i", inputs=[X])), ("flip", dict(input=X, dims=[0, -3])),
        ("mean", dict(input=X, dim=3)), ("gelu", dict(input=X, approximate="erf")),
    ], refused=True)


def test_the_defaults_of_the_header_are_those_of_python():
    """Where a call of two leaves everything out, defaults decide."""
    needed = {"input": In(2, 4, 6), "normalized_shape": 6, "num_groups": 2, "dim": 1, "dim0": 0, "dim1": 1, "dims": [0, 2, 1], "starts": [0, 0, 0], "sizes": [1, 2, 3], "weight": None,
              "kernel_size": 2, "mat2": In(2, 6, 3), "shape": [0, -1], "expand_shape": [2, 4, 6], "indices": 1, "inputs": [In(2, 3), In(2, 3)], "tensor": In(4, 2), "chunks": 2,
              "split_size_or_sections": 2, "index": 1, "pad": [1, 2], "start": 0, "end": 4, "alpha": 0.0, "beta": 1.0, "left": In(2), "right": In(2), "einsum_eq": "ij,kj->ik",
              "condition": In(2, 4, 6, dtype="bool"), "other": In(1), "dtype": "f16"}
    weights = {"conv1d": In(2, 4, 3), "conv2d": In(2, 2, 3, 3), "conv3d": In(2, 2, 1, 1, 1), "conv_transpose1d": In(4, 2, 3), "conv_transpose2d": In(2, 4, 3, 3), "conv_transpose3d": In(2, 1, 1, 1, 1),
               "linear": In(3, 6), "embedding": In(5, 2)}
    special = {"conv3d": {"input": In(2, 3, 4, 5)}, "conv_transpose3d": {"input": In(2, 3, 4, 5)}, "embedding": {"input": In(2, dtype="i64")},
               "op_and": {"left": In(2, dtype="bool"), "right": In(2, dtype="bool")}, "op_or": {"left": In(2, dtype="bool"), "right": In(2, dtype="bool")}, "flip": {"dims": [1]}}
    calls = []
    for function in F.__all__:
        asked = [p.name for p in inspect.signature(getattr(F, function)).parameters.values() if p.default is inspect.Parameter.empty]
        arguments = {name: needed[name] for name in asked} | {name: weights[function] for name in asked if name == "weight"}
        if function == "interpolate":
            arguments["size"] = 3
        calls.append((function, arguments | special.get(function, {})))
    compare(calls, refused=False)
