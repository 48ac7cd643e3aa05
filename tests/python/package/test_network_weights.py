"""Weights of networks by name: state_dict, module, .npz, safetensors, and what is wrong with them."""

from __future__ import annotations

import json

import numpy as np
import polyphase
import pytest
import torch
from safetensors_file import safetensors


def module() -> torch.nn.Module:
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.ConvTranspose2d(2, 4, 3, 2, 1, 1), torch.nn.ReLU(), torch.nn.Conv2d(4, 1, 3)).eval()


def build(weights) -> polyphase.Network:
    net = polyphase.Network("two", weights=weights)
    x = net.add_input("x", "float32", (1, 2, "H", "W"))
    x = net.relu(net.add_deconvolution_nd(x, net.weight("0.weight"), net.weight("0.bias"), stride=2, pre_padding=1, output_padding=1))
    net.mark_output(net.add_convolution_nd(x, net.weight("2.weight"), net.weight("2.bias")), "y")
    return net


@pytest.mark.parametrize("kind", ["module", "state_dict", "npz", "npz_deflated", "safetensors", "unaligned"])
def test_weights_by_name(kind, tmp_path):
    net = module()
    state = net.state_dict()
    arrays = {name: value.numpy() for name, value in state.items()}
    if kind.startswith("npz"):
        (np.savez_compressed if kind == "npz_deflated" else np.savez)(tmp_path / "w.npz", **arrays)
    source = {"module": net, "state_dict": state, "npz": tmp_path / "w.npz", "npz_deflated": str(tmp_path / "w.npz")}.get(kind)
    if source is None:
        source = safetensors(tmp_path / "w.safetensors", state, pad=kind == "safetensors")
    written = build(source)
    engine = written.compile(refittable=True)
    image = torch.randn(1, 2, 5, 6)
    with torch.no_grad():
        assert torch.allclose(engine(image), net(image), atol=1e-6)
    assert {name for weight in engine.info()["weights"] for name in weight["names"]} == set(state)
    assert written.weight("0.bias") is written.weight("0.bias")


def test_an_engine_outlives_the_file(tmp_path):
    state = module().state_dict()
    path = safetensors(tmp_path / "w.safetensors", state)
    engine = build(path).compile(target="portable")
    path.write_bytes(b"")
    image = torch.randn(1, 2, 5, 6)
    with torch.no_grad():
        assert torch.allclose(engine(image), module()(image), atol=1e-6)


def test_other_dtypes(tmp_path):
    tensors = {"half": torch.arange(4).to(torch.bfloat16), "flags": torch.tensor([True, False])}
    net = polyphase.Network(weights=safetensors(tmp_path / "w.safetensors", tensors))
    assert (net.weight("half").dtype, net.weight("half").shape, net.weight("flags").dtype) == ("bfloat16", (4,), "bool")


def test_the_real_writer(tmp_path):
    real = pytest.importorskip("safetensors.torch")
    state = module().state_dict()
    real.save_file(state, tmp_path / "w.safetensors")
    image = torch.randn(1, 2, 5, 6)
    with torch.no_grad():
        assert torch.allclose(build(tmp_path / "w.safetensors").compile()(image), module()(image), atol=1e-6)


def refused(function, *args, **kwargs) -> str:
    with pytest.raises(polyphase.Error) as error:
        function(*args, **kwargs)
    return str(error.value)


def test_what_is_wrong(tmp_path):
    state = module().state_dict()
    net = polyphase.Network(weights=state)
    assert refused(net.weight, "0.weigth") == "there is no weight named '0.weigth' among the 4 that were given. Names like it: 0.weight, 2.weight, 0.bias."
    assert refused(polyphase.Network().weight, "w") == "the network has no weights, so none named 'w'. Give them: Network(weights=...)."
    assert refused(polyphase.Network, weights=3) == "the weights are a int. Give a dict of names, such as module.state_dict(), or the module."
    path = tmp_path / "w.safetensors"
    path.write_bytes(b"\x05" + bytes(7))
    assert refused(polyphase.Network, weights=path) == (
        f"the file of 8 bytes is no safetensors file: its first 8 bytes promise a header of 5. Copy the file again, or write it again with safetensors.save_file. (while reading {path})")
    assert refused(polyphase.Network, weights=tmp_path / "nothing").startswith(f"cannot open '{tmp_path / 'nothing'}': No such file or directory.")
    path.write_bytes(len(b"{}").to_bytes(8, "little") + b"{}")
    assert refused(polyphase.Network(weights=path).weight, "w") == "there is no weight named 'w' among the 0 that were given. Names like it: none."
    header = json.dumps({"w": {"dtype": "F4", "shape": [2], "data_offsets": [0, 1]}}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"\0")
    assert refused(polyphase.Network(weights=path).weight, "w") == f"node 'w': tensor 'w' of '{path}' is of type F4. Convert it to float32 before it is saved."


def test_archives_that_are_none(tmp_path):
    path = tmp_path / "w.npz"
    np.savez(path, plain=np.ones(3, np.float32), objects=np.array([{}], dtype=object))
    net = polyphase.Network(weights=path)
    assert net.weight("plain").shape == (3,)
    assert refused(net.weight, "objects").startswith("the weight 'objects' cannot be read: Object arrays cannot be loaded")
    assert refused(net.weight, 5) == "the name of a weight is a int. Give a str."
    (tmp_path / "cut.npz").write_bytes(path.read_bytes()[:50])
    assert refused(polyphase.Network, weights=tmp_path / "cut.npz").startswith(f"'{tmp_path / 'cut.npz'}' is no archive that can be read: ")
    damaged = bytearray(path.read_bytes())
    damaged[damaged.index(b"NUMPY") + 60] ^= 255
    (tmp_path / "damaged.npz").write_bytes(damaged)
    assert refused(lambda: polyphase.Network(weights=tmp_path / "damaged.npz").weight("plain")).startswith("the weight 'plain' cannot be read: ")
    torch.save({"w": torch.ones(2)}, tmp_path / "w.pt")
    assert refused(polyphase.Network, weights=tmp_path / "w.pt") == (
        f"'{tmp_path / 'w.pt'}' is a file of torch.save. Give Network(weights=torch.load(path)), or save it as safetensors.")
