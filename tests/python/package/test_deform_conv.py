"""Deformable convolutions of torchvision, in programs of torch.export, polyphase.compile and torch.compile, against a
computation of the test's own; where torchvision is installed, against torchvision and its module too."""

from __future__ import annotations

import deform_conv
import pytest
import torch
from torch import nn

import polyphase

AUTO = torch.export.Dim.AUTO
SHAPES = {
    "plain": {},
    "without a mask": {"masked": False},
    "groups": {"groups": 2, "channels": (4, 6)},
    "offset groups": {"offset_groups": 2},
    "both": {"groups": 2, "offset_groups": 4, "channels": (8, 4)},
    "stride": {"stride": (2, 3), "size": (11, 13)},
    "padding": {"padding": (0, 3)},
    "dilation": {"dilation": (2, 3), "padding": (2, 3)},
    "one tap": {"kernel": (1, 1), "padding": (0, 0)},
    "flat": {"kernel": (1, 5), "padding": (0, 2), "size": (1, 12)},
    "depthwise": {"groups": 4, "channels": (4, 4), "offset_groups": 4, "masked": False},
}


class Deformed(nn.Module):
    """Offsets and masks that a convolution computes, as networks have them."""

    def __init__(self, shape):
        super().__init__()
        _, offset, mask, weight, bias = deform_conv.operands(**shape)
        self.weight, self.bias = nn.Parameter(weight), nn.Parameter(bias)
        self.places = offset.shape[1]
        self.masked = mask is not None
        self.geometry = {name: shape.get(name, default) for name, default in (("stride", (1, 1)), ("padding", (1, 1)), ("dilation", (1, 1)))}
        count = self.places + (mask.shape[1] if self.masked else 0)
        self.tell = nn.Conv2d(weight.shape[1] * shape.get("groups", 1), count, weight.shape[2:], **self.geometry)

    def forward(self, x):
        told = self.tell(x)
        mask = torch.sigmoid(told[:, self.places :]) if self.masked else None
        return torch.relu(deform_conv.deform_conv2d(x, told[:, : self.places] * 2, self.weight, self.bias, mask=mask, **self.geometry))


def made(shape):
    torch.manual_seed(3)
    net = Deformed(shape).eval()
    return net, deform_conv.operands(**shape)[0]


def expected(net, x):
    """The same module over the test's own computation, in FP64."""
    def computed(*arguments):
        return deform_conv.reference(*[one.double() if isinstance(one, torch.Tensor) else one for one in arguments])

    operator, deform_conv.OVERLOAD = deform_conv.OVERLOAD, computed
    try:
        with torch.no_grad():
            return net.double()(x.double())
    finally:
        deform_conv.OVERLOAD = operator
        net.float()


def close(found, want):
    assert found.dtype == torch.float32 and found.shape == want.shape
    torch.testing.assert_close(found.double(), want, rtol=1e-4, atol=2e-5 * float(want.abs().max()))


@pytest.mark.parametrize("name", SHAPES)
def test_numbers_of_programs_with_open_sizes(name):
    net, x = made(SHAPES[name])
    want = expected(net, x)
    for shapes in (None, {"x": {0: AUTO, 2: AUTO, 3: AUTO}}):
        engine = polyphase.compile(net, (x,), dynamic_shapes=shapes)
        close(engine(x), want)
    larger = torch.randn(x.shape[0] + 1, x.shape[1], x.shape[2] + (x.shape[2] > 1) * 2, x.shape[3] + 3)
    close(engine(larger), expected(net, larger))


@pytest.mark.parametrize("name", ["plain", "both", "without a mask"])
def test_torch_compile_takes_it_whole(name):
    net, x = made(SHAPES[name])
    want = expected(net, x)
    torch._dynamo.reset()
    fast = torch.compile(net, backend="polyphase", options={"require_full": True, "cache": False}, fullgraph=True)
    with torch.no_grad():
        close(fast(x), want)


def test_compat_lists_it():
    net, x = made(SHAPES["plain"])
    found = polyphase.compat(net, (x,))
    row = next(row for row in found.rows if row["operation"] == "torchvision.deform_conv2d.default")
    assert row["outcome"] == "right", found


def test_what_does_not_fit_is_refused():
    x, offset, mask, weight, bias = deform_conv.operands()

    class Given(nn.Module):
        def __init__(self, *rest):
            super().__init__()
            self.rest = rest

        def forward(self, x, weight, offset, mask, bias):
            return deform_conv.OVERLOAD(x, weight, offset, mask, bias, *self.rest)

    def refusal(*given, rest):
        program = torch.export.export(Given(*rest), given)
        with pytest.raises(polyphase.Error) as raised:
            polyphase.compile(program)
        return str(raised.value)

    plain = (1, 1, 1, 1, 1, 1, 1, 1, True)
    assert "the weight must be (M, C / groups, kH, kW)" in refusal(x, weight[:, :3], offset, mask, bias, rest=plain)
    assert "axis 1 of the offsets f32[2, 16, 7, 9] must be 18." in refusal(x, weight, offset[:, :16], mask, bias, rest=plain)
    assert "axis 2 of the mask f32[2, 9, 6, 9] must be 7." in refusal(x, weight, offset, mask[:, :, :6], bias, rest=plain)
    assert "must be as large as the result, 4" in refusal(x, weight, offset, mask, bias, rest=(2, *plain[1:]))
    assert "found stride 0" in refusal(x, weight, offset, mask, bias, rest=(0, *plain[1:]))


if deform_conv.HAS_TORCHVISION:  # make test-all installs it (requirements/networks.txt); the reference stands in for it elsewhere

    @pytest.mark.parametrize("name", SHAPES)
    def test_torchvision_itself(name):
        import torchvision

        shape = SHAPES[name]
        x, offset, mask, weight, bias = deform_conv.operands(**shape)
        layer = torchvision.ops.DeformConv2d(x.shape[1], weight.shape[0], weight.shape[2:], shape.get("stride", (1, 1)), shape.get("padding", (1, 1)),
                                             shape.get("dilation", (1, 1)), shape.get("groups", 1), bias=name != "plain").eval()
        with torch.no_grad():
            want = layer(x, offset, mask)
            close(polyphase.compile(layer, (x, offset, mask))(*[one for one in (x, offset, mask) if one is not None]), want.double())
            geometry = {name: shape.get(name, default) for name, default in (("stride", (1, 1)), ("padding", (1, 1)), ("dilation", (1, 1)))}
            again = deform_conv.deform_conv2d(x.double(), offset.double(), layer.weight.double(), None if layer.bias is None else layer.bias.double(),
                                              mask=None if mask is None else mask.double(), **geometry)
            own = deform_conv.reference(x.double(), layer.weight.double(), offset.double(), x.new_zeros(1).double() if mask is None else mask.double(),
                                        torch.zeros(len(weight)).double() if layer.bias is None else layer.bias.double(), *geometry["stride"],
                                        *geometry["padding"], *geometry["dilation"], shape.get("groups", 1), shape.get("offset_groups", 1), mask is not None)
            torch.testing.assert_close(own, again)
