"""Network(limits="tensorrt"): each rule refuses at the call, and what it says to write instead is taken and gives the same numbers."""

from __future__ import annotations

import polyphase
import pytest
import torch
from polyphase import _native

RULES = {limit["name"]: limit for limit in _native.limits() if limit["target"] == "tensorrt"}


def whole(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    return torch.randint(-3, 4, shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def conv_1d(net, x, w):
    return net.add_convolution_nd(x, w, stride=2, pre_padding=1, name="layer")


def conv_1d_as_2d(net, x, w):
    wide = net.add_convolution_nd(x.view(1, 2, 1, 7), w[:, :, None], stride=[1, 2], pre_padding=[0, 1])
    return wide.view(1, 3, -1)


def deconv_1d(net, x, w):
    return net.add_deconvolution_nd(x, w, stride=2, pre_padding=1, name="layer")


def deconv_1d_as_2d(net, x, w):
    wide = net.add_deconvolution_nd(x.view(1, 2, 1, 7), w[:, :, None], stride=[1, 2], pre_padding=[0, 1])
    return wide.view(1, 3, -1)


def in_floats(function):
    def rewritten(net, x, w):
        return net.cast(function(net, net.cast(x, to="float32"), w.float()), to="int32")
    return rewritten


def plain(transposed: bool, **settings):
    def build(net, x, w):
        return (net.add_deconvolution_nd if transposed else net.add_convolution_nd)(x, w, **settings, name="layer")
    return build


def negative(net, x, w):
    return net.add_deconvolution_nd(x, w, torch.tensor([1.0, 2, 3]), stride=2, pre_padding=0, output_padding=1, name="layer")


def padded_after(net, x, w):
    inner = net.add_deconvolution_nd(x, w, stride=2)
    return net.pad(inner, pre=[0, 0, 0, 0], post=[0, 0, 1, 1]) + net.add_constant([1.0, 2, 3]).view(1, 3, 1, 1)


def as_large_as(net, x, w):
    skip = net.add_input("skip", "float32", (1, 1, "H", "W"))
    return net.add_deconvolution_nd(x, w, stride=2, pre_padding=1, output_size=skip.shape, name="layer")


def cut_to_size(net, x, w):
    skip = net.add_input("skip", "float32", (1, 1, "H", "W"))
    inner = net.add_deconvolution_nd(x, w, stride=2, pre_padding=1, output_padding=1)
    return net.slice(inner, start=[0, 0, 0, 0], size=[1, 3, skip.size(2), skip.size(3)], step=[1, 1, 1, 1])


def open_channels(transposed: bool):
    def build(net, x, w):
        flat = net.add_input("flat", "float32", (1, "C", 7, 7))
        return net.add(x[:, :1, :1, :1], 0.0) * 0 + (net.add_deconvolution_nd if transposed else net.add_convolution_nd)(flat, w, name="layer")
    return build


def named_channels(transposed: bool):
    def build(net, x, w):
        flat = net.add_input("flat", "float32", (1, "C", 7, 7)).view(1, 2, 7, 7)
        return net.add(x[:, :1, :1, :1], 0.0) * 0 + (net.add_deconvolution_nd if transposed else net.add_convolution_nd)(flat, w)
    return build


def filled_groups(transposed: bool):
    """Two groups of 2 and 2 channels, each filled with two channels of zeros."""
    def build(net, x, w):
        x = net.reshape(net.pad(x.view(1, 2, 2, 7, 7), pre=[0] * 5, post=[0, 0, 2, 0, 0]), shape=[1, 8, 7, 7])
        w = torch.nn.functional.pad(w.view(2, 2, 2, 3, 3), (0, 0, 0, 0, 0, 2, 0, 2)).reshape(8, 4, 3, 3)
        y = (net.add_deconvolution_nd if transposed else net.add_convolution_nd)(x, w, groups=2)
        height = y.shape[2]
        return net.reshape(y.view(1, 2, 4, height, height)[:, :, :2], shape=[1, 4, height, height])
    return build


# rule → (input's dtype and shape, weight, what breaks it, what is written instead; None: nothing inside of a network)
IMAGE = ("float32", (1, 2, 7, 7))
CASES = {
    "convolution-1d": (("float32", (1, 2, 7)), whole(3, 2, 3), conv_1d, conv_1d_as_2d),
    "deconvolution-1d": (("float32", (1, 2, 7)), whole(2, 3, 3), deconv_1d, deconv_1d_as_2d),
    "convolution-channels": (IMAGE, whole(3, 2, 3, 3), open_channels(False), named_channels(False)),
    "deconvolution-channels": (IMAGE, whole(2, 3, 3, 3), open_channels(True), named_channels(True)),
    "convolution-dtype": (("int32", (1, 2, 7, 7)), whole(3, 2, 3, 3, dtype=torch.int32), plain(False), in_floats(plain(False))),
    "deconvolution-dtype": (("int32", (1, 2, 7, 7)), whole(2, 3, 3, 3, dtype=torch.int32), plain(True), in_floats(plain(True))),
    "deconvolution-negative-padding": (IMAGE, whole(2, 3, 3, 3), negative, padded_after),
    "deconvolution-computed-padding": (IMAGE, whole(2, 3, 3, 3), as_large_as, cut_to_size),
    "convolution-int8-groups": (("int8", (1, 4, 7, 7)), whole(4, 2, 3, 3, dtype=torch.int8), plain(False, groups=2), filled_groups(False)),
    "deconvolution-int8-groups": (("int8", (1, 4, 7, 7)), whole(4, 2, 3, 3, dtype=torch.int8), plain(True, groups=2), filled_groups(True)),
    "dtypes": (IMAGE, None, lambda net, x, w: net.cast(net.cast(x, to="float64"), to="float32", name="layer"), None),
    "elements": (IMAGE, None, lambda net, x, w: net.relu(net.expand(x[:, :1, :1], shape=[2**20, 64, 64, 7]), name="layer"), None),
}


def test_every_rule_has_a_case():
    assert list(CASES) == list(RULES)
    assert all(limit["rule"] and limit["rewrite"] and limit["source"] and limit["versions"] for limit in RULES.values())


def written(case, write, limits):
    (dtype, shape), weight, *_ = CASES[case]
    net = polyphase.Network(limits=limits)
    return net, write(net, net.add_input("x", dtype, shape), weight)


@pytest.mark.parametrize("case", CASES)
def test_the_rule_refuses_and_its_rewrite_is_taken(case):
    (dtype, shape), _, breaks, instead = CASES[case]
    with pytest.raises(polyphase.Error) as error:
        written(case, breaks, "tensorrt")
    limit = RULES[case]
    assert str(error.value).startswith(f"node 'layer': TensorRT refuses this ({case}): {limit['rule']}, and ")
    assert str(error.value).endswith(f". {limit['rewrite']}")
    if instead is None:
        return
    x = whole(*shape, dtype=getattr(torch, dtype), seed=3)
    results = []
    for write, limits in ((breaks, None), (instead, "tensorrt")):
        net, y = written(case, write, limits)
        net.mark_output(y, "y")
        engine = net.compile()
        more = {"skip": torch.zeros(1, 1, 14, 13), "flat": whole(1, 2, 7, 7, seed=4)}
        results.append(engine(x, *(more[port.name] for port in engine.inputs[1:])))
    assert torch.equal(*results)


def test_what_is_found_stands_in_the_message():
    net = polyphase.Network(limits="tensorrt")
    x = net.add_input("x", "float32", (1, 2, 7))
    with pytest.raises(polyphase.Error) as error:
        net.add_deconvolution_nd(x, whole(2, 3, 3), stride=2, name="up1")
    assert str(error.value) == (
        "node 'up1': TensorRT refuses this (deconvolution-1d): a deconvolution has 2 or 3 spatial axes, and x is f32[1, 2, 7]. Reshape x to (N, C, 1, W) and the "
        "weight to (.., .., 1, k), with stride 1, dilation 1 and no padding on the new axis; reshape the result back.")
    assert net.add_deconvolution_nd(net.reshape(x, shape=[1, 2, 1, 7]), whole(2, 3, 1, 3), name="up1").shape == (1, 3, 1, 9)
    with pytest.raises(polyphase.Error, match="node 'y': TensorRT refuses this .dtypes.: .* and a tensor is f64.1.. Cast it to one of these outside of the network."):
        net.add_input("y", "float64", (1,))


def test_limits_that_nobody_knows():
    with pytest.raises(polyphase.Error) as error:
        polyphase.Network(limits="tensorflow")
    assert str(error.value) == "limits is 'tensorflow'. Limits are known of: tensorrt."
