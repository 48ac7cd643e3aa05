"""Session.run_tiled: the bits of run, from memory-mapped inputs too, and what it refuses."""

from __future__ import annotations

import numpy as np
import polyphase
import pytest
import torch


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiled")
    torch.manual_seed(2)
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.ConvTranspose2d(8, 3, 4, stride=2, padding=1)).eval()
    torch.onnx.export(net, (torch.zeros(1, 3, 16, 16),), folder / "net.onnx", input_names=["x"], output_names=["y"], dynamo=False,
                      dynamic_axes={"x": {2: "H", 3: "W"}})
    return polyphase.compile(folder / "net.onnx").session()


@pytest.fixture
def x():
    return np.random.default_rng(3).standard_normal((1, 3, 70, 90), np.float32)


def test_tiles_give_the_bits_of_a_run(session, x, tmp_path):
    whole = session.run({"x": x})["y"]
    np.save(tmp_path / "x.npy", x)
    for given in (x, np.load(tmp_path / "x.npy", mmap_mode="r"), x.transpose(0, 1, 3, 2).copy().transpose(0, 1, 3, 2)):
        shares = []
        tiled = session.run_tiled({"x": given}, tiles={"H": 20, "W": 33}, progress=shares.append)["y"]
        assert tiled.tobytes() == whole.tobytes() and tiled.shape == whole.shape
        assert len(shares) == 4 * 3 and shares == sorted(shares) and shares[-1] == 1
    assert session.run_tiled([x], memory_bytes=200_000)["y"].tobytes() == whole.tobytes()
    tensor = session.run_tiled([torch.from_numpy(x)], tiles={"H": 16})["y"]
    assert isinstance(tensor, torch.Tensor) and tensor.numpy().tobytes() == whole.tobytes()


def test_the_axes_say_how_far_a_tile_reads(session):
    axes = {axis["size"]: axis for axis in session.tile_axes}
    assert set(axes) == {"H", "W"}
    for axis in axes.values():
        assert axis["refusal"] is None and axis["step"] % 2 == 0 and axis["halo_before"] == axis["halo_after"] == 2


def test_what_is_refused(session, x):
    with pytest.raises(polyphase.Error, match="tiles of 8 are asked for along 'Z'"):
        session.run_tiled([x], tiles={"Z": 8})
    with pytest.raises(polyphase.Error, match="tiles is no dict of sizes"):
        session.run_tiled([x], tiles={"H": "many"})
    with pytest.raises(polyphase.Error, match="memory_bytes is -1"):
        session.run_tiled([x], memory_bytes=-1)
    with pytest.raises(polyphase.Error, match="the smallest tiles of the network need"):
        session.run_tiled([x], memory_bytes=1000)
    with pytest.raises(polyphase.CancelledError):
        session.run_tiled([x], tiles={"H": 4, "W": 4}, deadline=0)


def test_what_progress_raises_comes_through(session, x):
    def stop(done):
        raise RuntimeError("enough")
    with pytest.raises(RuntimeError, match="enough"):
        session.run_tiled([x], tiles={"H": 10}, progress=stop)
