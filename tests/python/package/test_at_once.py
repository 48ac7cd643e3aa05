"""polyphase.layer: one function for a network's tensors and for arrays."""

from __future__ import annotations

import numpy as np
import polyphase
import pytest
import torch
from torch.nn import functional as F

written = []


@polyphase.layer
def block(net, x, weight, bias=None, *, stride=2, parts=1):
    """Says what it does."""
    written.append(net)
    y = net.relu(net.add_deconvolution_nd(x, weight, bias, stride=stride))
    return y if parts == 1 else {"all": y, "parts": [y[:, :1], y[:, 1:]], "count": parts}


def arrays():
    torch.manual_seed(0)
    return torch.randn(1, 2, 5, 5), torch.randn(2, 3, 3, 3), torch.randn(3)


def test_arrays_run_at_once_and_engines_are_kept():
    x, weight, bias = arrays()
    expected = F.relu(F.conv_transpose2d(x, weight, bias, stride=2))
    written.clear()
    for scale in (1, 2):
        found = block(x * scale, weight, bias * scale)
        assert isinstance(found, torch.Tensor) and torch.allclose(found, expected * scale, atol=1e-5)
    assert len(written) == 1
    found = block(x.numpy(), weight.numpy(), bias=bias.numpy())
    assert isinstance(found, np.ndarray) and len(written) == 2
    assert torch.allclose(block(x, weight), F.relu(F.conv_transpose2d(x, weight, stride=2)), atol=1e-5)
    assert torch.allclose(block(x, weight, stride=1), F.relu(F.conv_transpose2d(x, weight)), atol=1e-5)
    assert torch.allclose(block(x[:, :, :4], weight), F.relu(F.conv_transpose2d(x[:, :, :4], weight, stride=2)), atol=1e-5)
    assert len(written) == 5
    assert torch.allclose(block(x.requires_grad_(), torch.nn.Parameter(weight)), F.relu(F.conv_transpose2d(x, weight, stride=2)), atol=1e-5)


def test_tensors_add_layers_to_their_network():
    x, weight, bias = arrays()
    net = polyphase.Network()
    given = net.add_input("x", "float32", (1, 2, "H", "W"))
    y = block(given, weight, bias)
    assert y.network is net and written[-1] is net and [str(size) for size in y.shape] == ["1", "3", "2*H + 1", "2*W + 1"]
    net.mark_output(y, "y")
    assert torch.equal(net.compile()(x), block(x, weight, bias))


def test_results_keep_their_form():
    x, weight, bias = arrays()
    found = block(x, weight, bias, parts=2)
    assert found["count"] == 2 and torch.equal(torch.cat(found["parts"], 1), found["all"])


def test_without_operands_the_network_around_is_meant():
    @polyphase.layer
    def noise(net, *, shape):
        return net.random(shape=shape, key=3)

    with polyphase.Network() as net:
        assert noise(shape=[2, 2]).network is net
    with pytest.raises(polyphase.Error, match="'noise' is given neither tensors nor arrays, outside of a network. Give some, or call it inside of `with Network.. as net:`."):
        noise(shape=[2, 2])


def test_what_is_wrong():
    assert (block.__name__, block.__doc__) == ("block", "Says what it does.")
    x, weight, _ = arrays()
    one, two = (polyphase.Network().add_input("x", "float32", (1, 2, 5, 5)) for _ in range(2))
    with pytest.raises(polyphase.Error, match="'block' is given tensors of 2 networks. Give tensors of one."):
        block(one, two)
    with pytest.raises(polyphase.Error, match="expected input.1, 2, 5, 5. to have 3 channels"):
        block(x, weight.transpose(0, 1))
    with pytest.raises(polyphase.Error, match="'nothing' returned no tensor. Return the tensors that it writes."):
        polyphase.layer(nothing)(x)


def nothing(net, x):
    return None
