"""`run --tile` and Session.run_tiled: the bits of the whole run, in bounded memory, or a refusal that names the node."""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import networks
import random_networks

FULL = os.environ.get("POLYPHASE_FULL") == "1"
SIZES = {1: ("T",), 2: ("H", "W"), 3: ("D", "H", "W")}


def export(module: nn.Module, x: torch.Tensor, path, names=None):
    names = names or SIZES[x.dim() - 2]
    torch.onnx.export(module.eval(), (x,), str(path), input_names=["x"], output_names=["y"], opset_version=17, dynamo=False,
                      dynamic_axes={"x": {i + 2: name for i, name in enumerate(names) if name}})
    return path


def both(polyphase, model, x, folder, *tile):
    """Whole and in tiles."""
    np.save(folder / "x.npy", x)
    polyphase("run", model, "--input", folder / "x.npy", "--output", folder / "whole.npy")
    done = polyphase("run", model, "--input", folder / "x.npy", "--output", folder / "tiled.npy", "--json", *tile)
    return np.load(folder / "whole.npy"), np.load(folder / "tiled.npy"), json.loads(done.stdout)


def same_bits(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


class UNet(nn.Module):
    """Skips, transposed convolutions of two kinds, batch norm; takes multiples of 4."""

    def __init__(self):
        super().__init__()
        block = lambda i, o: nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU())
        self.a, self.b, self.c, self.d, self.e = block(3, 16), block(16, 32), block(32, 40), block(64, 32), block(32, 16)
        self.up1, self.up2, self.out = nn.ConvTranspose2d(40, 32, 2, 2), nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.Conv2d(16, 3, 1)

    def forward(self, x):
        a = self.a(x)
        b = self.b(F.max_pool2d(a, 2))
        d = self.d(torch.cat([self.up1(self.c(F.max_pool2d(b, 2))), b], 1))
        return torch.sigmoid(self.out(self.e(torch.cat([self.up2(d), a], 1))))


class Vocoder(nn.Module):
    """Frames to samples, 64 of each, with dilated residual convolutions."""

    def __init__(self):
        super().__init__()
        self.pre, self.post = nn.Conv1d(20, 64, 7, padding=3), nn.Conv1d(16, 1, 7, padding=3)
        self.ups = nn.ModuleList([nn.ConvTranspose1d(64, 32, 16, 8, 4), nn.ConvTranspose1d(32, 16, 16, 8, 4)])
        self.res = nn.ModuleList([nn.ModuleList([nn.Conv1d(c, c, 3, padding=d, dilation=d) for d in (1, 3, 5)]) for c in (32, 16)])

    def forward(self, x):
        x = self.pre(x)
        for up, res in zip(self.ups, self.res):
            x = up(F.leaky_relu(x, 0.1))
            for conv in res:
                x = x + conv(F.leaky_relu(x, 0.1))
        return torch.tanh(self.post(F.leaky_relu(x)))


class Mixed(nn.Module):
    """Paddings by reflection and by the edge, strides, dilation, resizing by 3 and 3/2, a pixel shuffle, a convolution without padding."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 16, 5, padding=2, padding_mode="reflect"), nn.Conv2d(16, 16, 3, stride=2, padding=1)
        self.c, self.d = nn.Conv2d(16, 16, 3, padding=2, dilation=2), nn.Conv2d(16, 12, 3, padding=1, padding_mode="replicate")

    def forward(self, x):
        x = F.interpolate(self.c(F.gelu(self.b(F.silu(self.a(x))))), scale_factor=3, mode="bilinear")
        x = F.interpolate(F.pixel_shuffle(torch.tanh(self.d(x)), 2), scale_factor=1.5, mode="nearest")
        return F.avg_pool2d(x, 3, 2, 1)[:, :, 2:]


@pytest.fixture(scope="module")
def models(tmp_path_factory, polyphase):
    folder = tmp_path_factory.mktemp("tiles")
    torch.manual_seed(7)
    made = {}
    for name, module, x in [("unet", UNet(), torch.randn(1, 3, 64, 64)), ("vocoder", Vocoder(), torch.randn(1, 20, 40)), ("mixed", Mixed(), torch.randn(1, 3, 64, 64)),
                            ("volume", nn.Sequential(nn.Conv3d(1, 8, 3, padding=1), nn.ELU(), nn.ConvTranspose3d(8, 4, 4, 2, 1), nn.Conv3d(4, 1, 3)), torch.randn(1, 1, 8, 8, 8))]:
        networks.trained_like(module, 7)
        export(module, x, folder / f"{name}.onnx")
        polyphase("compile", folder / f"{name}.onnx", "-o", folder / f"{name}.ppe")
        made[name] = folder / f"{name}.ppe"
    return made


def noise(*sizes):
    return np.random.default_rng(sum(sizes)).standard_normal(sizes, np.float32)


# ---------------------------------------------------------------- the same bits


@pytest.mark.parametrize("name, sizes, tile", [
    ("unet", (1, 3, 128, 200), "32"), ("unet", (1, 3, 132, 76), "16x48"), ("unet", (1, 3, 64, 96), "0x20"), ("unet", (1, 3, 12, 8), "512"),
    ("mixed", (1, 3, 131, 90), "24x40"), ("mixed", (1, 3, 97, 83), "7"), ("vocoder", (1, 20, 333), "25"), ("vocoder", (1, 20, 5), "4"),
    ("volume", (1, 1, 21, 18, 33), "8x8x16"), ("volume", (1, 1, 9, 40, 7), "6"),
])
def test_tiles_give_the_bits_of_the_whole(polyphase, models, tmp_path, name, sizes, tile):
    whole, tiled, report = both(polyphase, models[name], noise(*sizes), tmp_path, "--tile", tile)
    assert same_bits(whole, tiled)
    assert report["tiles"]["count"] > 1 or max(sizes[2:]) <= 12


@pytest.mark.parametrize("layer", [
    nn.Conv2d(32, 17, 4), nn.Conv2d(300, 2, 3), nn.Conv2d(40, 40, 5, padding=2, groups=40), nn.Conv2d(64, 20, 1), nn.ConvTranspose2d(40, 3, 9, 4, 4), nn.ConvTranspose2d(300, 4, 5, 2),
    nn.ConvTranspose2d(17, 8, 6, (3, 1)), nn.ConvTranspose2d(24, 5, 2, 2), nn.ConvTranspose2d(600, 40, 2, 2), nn.ConvTranspose2d(24, 30, 4, 4)], ids=str)
def test_the_order_of_sums_does_not_depend_on_the_image(polyphase, tmp_path, layer):
    x = noise(1, layer.in_channels, 90, 70)
    export(layer, torch.from_numpy(x), tmp_path / "net.onnx")
    whole, tiled, _ = both(polyphase, tmp_path / "net.onnx", x, tmp_path, "--tile", "17")
    assert same_bits(whole, tiled)


@pytest.mark.parametrize("layers, precision", [
    ([nn.Conv1d(64, 64, 7, padding=3)], "model"), ([nn.Conv1d(64, 48, 11, padding=10, dilation=2), nn.ReLU(), nn.Conv1d(48, 64, 8)], "model"),
    ([nn.ConvTranspose1d(64, 64, 16, 2, 7), nn.ConvTranspose1d(64, 32, 9, 1, 8, dilation=2)], "model"), ([nn.Conv2d(64, 64, 3, padding=1)], "auto"),
    ([nn.ConvTranspose2d(64, 40, 4, 2, 1), nn.ReLU(), nn.Conv2d(40, 64, 5, padding=4, dilation=2)], "auto"),
    ([nn.Conv2d(64, 32, 3, dilation=3), nn.PReLU(32), nn.ConvTranspose2d(32, 64, 5, 2, 2)], "auto"),
    ([nn.ConvTranspose2d(64, 32, 7, padding=3), nn.ReLU(), nn.Conv2d(32, 64, 7, stride=2, padding=3)], "auto")], ids=str)
def test_outputs_filtered_at_once_begin_with_the_tile(polyphase, tmp_path, layers, precision):
    """Four of a line of four taps and more, and of two axes under automatic precision."""
    x = noise(1, 64, *((391,) if isinstance(layers[0], (nn.Conv1d, nn.ConvTranspose1d)) else (71, 83)))
    torch.manual_seed(8)
    export(nn.Sequential(*layers), torch.from_numpy(x), tmp_path / "net.onnx")
    target = json.loads(polyphase("devices", "--json").stdout)["devices"][0]["target"]
    target = "avx512" if target in ("avx512_bf16", "amx") else target  # where bf16 is faster, automatic precision rounds to it instead
    polyphase("compile", tmp_path / "net.onnx", "-o", tmp_path / "net.ppe", "--precision", precision, "--target", target)
    assert ("winograd_fours" if precision == "auto" else "winograd") in polyphase("inspect", tmp_path / "net.ppe").stdout
    for tile in ("22", "35", "41"):
        whole, tiled, report = both(polyphase, tmp_path / "net.ppe", x, tmp_path, "--tile", tile)
        assert same_bits(whole, tiled) and report["tiles"]["count"] > 1


def test_auto_keeps_to_the_memory(polyphase, models, tmp_path):
    x = noise(1, 3, 260, 300)
    counts = []
    polyphase("compile", models["unet"].with_suffix(".onnx"), "-o", tmp_path / "unet.ppe", "--target", "avx2")  # whose least tile is known
    for memory in ("64M", "4M", "1M"):
        whole, tiled, report = both(polyphase, tmp_path / "unet.ppe", x, tmp_path, "--tile", "auto", "--memory", memory)
        assert same_bits(whole, tiled)
        assert report["tiles"]["memory_bytes"] <= int(memory[:-1]) << 20
        counts.append(report["tiles"]["count"])
    assert counts[0] == 1 < counts[1] < counts[2]


def test_threads_do_not_count(polyphase, models, tmp_path):
    np.save(tmp_path / "x.npy", noise(1, 3, 100, 100))
    outputs = []
    for threads in (1, 3):
        polyphase("run", models["unet"], "--input", tmp_path / "x.npy", "--output", tmp_path / "y.npy", "--tile", "28", "--threads", threads)
        outputs.append((tmp_path / "y.npy").read_bytes())
    assert outputs[0] == outputs[1]


SEEDS = range(300 if FULL else 24)
# What cannot be cut: every one of these words names an operator that sees a whole axis, or a size that is no fixed ratio.
CANNOT = ("instance_norm", "group_norm", "reduce_mean", "mean", "wrap", "align_corners", "brings the other end", "no fixed ratio", "whole of", "may read the whole",
          "does not grow in step", "computed number", "lie in pieces", "depend on other sizes", "turns axis", "mixes axis", "however long it is")


@pytest.mark.parametrize("seed", SEEDS)
def test_random_networks(polyphase, tmp_path, seed):
    net = random_networks.RandomNetwork(seed)
    try:
        export(net, net.example, tmp_path / "net.onnx")
    except Exception as error:  # noqa: BLE001: what PyTorch cannot write with open sizes is not ours to test
        pytest.skip(f"not exported: {type(error).__name__}")
    draw = np.random.default_rng(seed)
    grown = tuple(int(draw.integers(2 * size, 4 * size)) for size in net.example.shape[2:])
    np.save(tmp_path / "x.npy", noise(*net.example.shape[:2], *grown))
    whole = polyphase_or_error(polyphase, tmp_path, "whole.npy")
    tile = str(draw.integers(3, 12))
    tiled = polyphase_or_error(polyphase, tmp_path, "tiled.npy", "--tile", tile)
    if isinstance(tiled, str):
        assert isinstance(whole, str) or any(word in tiled for word in CANNOT), f"{tiled}\n{net.text()}"
        return
    assert not isinstance(whole, str), f"tiles ran where the whole says {whole}"
    assert same_bits(whole, tiled), f"seed {seed}, --tile {tile}: {net.text()}"


def drawn_layers(draw, rank):
    """One to three convolutions, forward or transposed, wide enough for every kernel, with activations between."""
    forward, transposed = ((nn.Conv1d, nn.ConvTranspose1d), (nn.Conv2d, nn.ConvTranspose2d), (nn.Conv3d, nn.ConvTranspose3d))[rank - 1]
    pick = lambda choices: choices[int(draw.integers(len(choices)))]
    channels, layers = [pick([3, 16, 32, 40, 64, 96])], []
    for _ in range(int(draw.integers(1, 4))):
        inner, outer = channels[-1], pick([1, 3, 8, 20, 32, 64, 64])
        kernel, up = pick([2, 3, 3, 4] if rank == 3 else [1, 2, 3, 3, 4, 5, 7]), draw.random() < 0.45
        stride = pick([1, 1, 2, 2, 3, 4] if up else [1, 1, 1, 2])
        dilation = pick([1, 1, 2, 3]) if stride == 1 else 1
        padding = int(draw.integers(0, (kernel - 1) * dilation // 2 + 1))
        if up:
            layers.append(transposed(inner, outer, kernel, stride, min(padding, 3), dilation=dilation))
        else:
            layers.append(forward(inner, outer, kernel, stride, padding, dilation, padding_mode=pick(["zeros", "zeros", "reflect", "replicate"]) if padding else "zeros"))
        layers.append(pick([nn.ReLU(), nn.PReLU(outer), nn.SiLU(), nn.Identity()]))
        channels.append(outer)
    return nn.Sequential(*layers), channels[0]


@pytest.mark.parametrize("seed", range(200) if FULL else range(4, 200, 9))
def test_drawn_layers(polyphase, tmp_path, seed):
    draw = np.random.default_rng(90_000 + seed)
    torch.manual_seed(seed)
    rank = (1, 2, 2, 2, 3)[int(draw.integers(5))]
    net, channels = drawn_layers(draw, rank)
    x = noise(1, channels, *(int(n) for n in draw.integers(*((100, 600), (24, 90), (9, 22))[rank - 1], size=rank)))
    export(net, torch.from_numpy(x), tmp_path / "net.onnx")
    polyphase("compile", tmp_path / "net.onnx", "-o", tmp_path / "net.ppe", "--precision", ("auto", "model", "auto")[seed % 3])
    tile = str(int(draw.integers(*((20, 200), (5, 50), (5, 12))[rank - 1])))
    whole, tiled, _ = both(polyphase, tmp_path / "net.ppe", x, tmp_path, "--tile", tile)
    assert same_bits(whole, tiled), f"--tile {tile} of {x.shape}: {net}"


def polyphase_or_error(polyphase, folder, output, *more):
    done = subprocess.run([str(polyphase.path), "run", str(folder / "net.onnx"), "--input", str(folder / "x.npy"), "--output", str(folder / output), *more],
                          capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode in (0, 1), done.stderr
    return np.load(folder / output) if done.returncode == 0 else done.stderr


# ---------------------------------------------------------------- what is refused


class Attending(nn.Module):
    def forward(self, x):
        tokens = x.flatten(2).transpose(1, 2)
        return F.scaled_dot_product_attention(tokens, tokens, tokens).transpose(1, 2).reshape(x.shape)


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, x):
        return self.conv(x) * torch.sigmoid(x.mean((2, 3), keepdim=True))


@pytest.mark.parametrize("module, node, why", [
    (nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.InstanceNorm2d(4)), "", "takes its mean and variance over the whole of axis 2"),
    (nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.GroupNorm(2, 4)), "", "takes its mean and variance over the whole of axis 2"),
    (Gate(), "/ReduceMean", "reduce_mean reduces the whole of axis 2 to one value"),
    (Attending(), "", "mixes axis 2 with others"),
    (nn.Sequential(nn.Conv2d(4, 4, 3, padding=1, padding_mode="circular")), "", ""),
    (nn.Sequential(nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)), "/0/Resize", "maps axis 2 by its whole size (coordinates align_corners)"),
], ids=["instance_norm", "group_norm", "global_pool", "attention", "circular", "align_corners"])
def test_a_network_that_sees_everything_is_refused(polyphase, tmp_path, module, node, why):
    torch.manual_seed(1)
    export(module, torch.randn(1, 4, 16, 16), tmp_path / "net.onnx")
    np.save(tmp_path / "x.npy", noise(1, 4, 40, 40))
    for tile in ("auto", "16"):
        done = polyphase("run", tmp_path / "net.onnx", "--input", tmp_path / "x.npy", "--output", tmp_path / "y.npy", "--tile", tile, expect=1)
        assert "the network cannot be run in tiles along H: " in done.stderr
        assert "Run it on whole inputs" in done.stderr
        assert node in done.stderr and why in done.stderr and "node '" in done.stderr
        assert not (tmp_path / "y.npy").exists()


def test_one_axis_may_be_cut_where_the_other_may_not(polyphase, tmp_path):
    export(nn.Sequential(nn.Conv2d(4, 8, 3, padding=1), nn.Softmax(dim=2), nn.Conv2d(8, 4, 3)), torch.randn(1, 4, 16, 16), tmp_path / "net.onnx")
    x = noise(1, 4, 24, 160)
    for tile in (("0x24",), ("auto", "--memory", "100K")):
        whole, tiled, report = both(polyphase, tmp_path / "net.onnx", x, tmp_path, "--tile", *tile)
        assert same_bits(whole, tiled) and report["tiles"]["count"] > 1 and report["tiles"]["own"]["H"] == 24


def test_sizes_that_do_not_fit_are_refused_as_by_the_whole(polyphase, models, tmp_path):
    np.save(tmp_path / "x.npy", noise(1, 3, 130, 200))  # the U-Net takes multiples of 4
    said = []
    for more in ((), ("--tile", "32"), ("--tile", "auto")):
        done = polyphase("run", models["unet"], "--input", tmp_path / "x.npy", "--output", tmp_path / "y.npy", *more, expect=1)
        said.append(done.stderr)
    assert said[0] == said[1] == said[2]


@pytest.mark.parametrize("words, said", [
    (["--tile", "big"], "--tile is 'big', expected auto, N, HxW or DxHxW."),
    (["--tile", "16x16x16"], "--tile 16x16x16 has 3 numbers; input 'x' (1x3xHxW) has 2 sizes to cut."),
    (["--tile", "16", "--memory", "1M"], "--memory is given, but --tile 16 says how large tiles are."),
    (["--memory", "1M"], "--memory is given without --tile."),
    (["--tile", "auto", "--memory", "lots"], "--memory is 'lots', expected a number of bytes."),
    (["--tile", "auto", "--memory", "9K"], "the smallest tiles of the network need "),
])
def test_flags_that_mean_nothing(polyphase, models, tmp_path, words, said):
    np.save(tmp_path / "x.npy", noise(1, 3, 64, 64))
    assert said in polyphase("run", models["unet"], "--input", tmp_path / "x.npy", *words, expect=1).stderr


def test_fixed_sizes_are_named(polyphase, tmp_path):
    export(nn.Conv2d(3, 3, 3, padding=1), torch.randn(1, 3, 32, 32), tmp_path / "net.onnx", ("", ""))
    np.save(tmp_path / "x.npy", noise(1, 3, 32, 32))
    done = polyphase("run", tmp_path / "net.onnx", "--input", tmp_path / "x.npy", "--tile", "16", expect=1)
    assert "all sizes of the network are fixed, so it takes no tiles: 'x' [1, 3, 32, 32]." in done.stderr and "Export the model with these axes open" in done.stderr


# ---------------------------------------------------------------- files


def write_png(path, pixels):
    height, width, channels = pixels.shape
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + pixels[y].tobytes() for y in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, {1: 0, 3: 2}[channels], 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b""))


def test_images_row_by_row(polyphase, models, tmp_path):
    write_png(tmp_path / "in.png", np.random.default_rng(0).integers(0, 256, (100, 132, 3), np.uint8))
    for name, more in (("whole", ()), ("tiled", ("--tile", "24x40")), ("auto", ("--tile", "auto", "--memory", "2M"))):
        polyphase("run", models["unet"], "--input", tmp_path / "in.png", "--output", tmp_path / f"{name}.png", "--mean", "0.5", *more)
    assert (tmp_path / "whole.png").read_bytes() == (tmp_path / "tiled.png").read_bytes() == (tmp_path / "auto.png").read_bytes()


def test_sounds_part_by_part(polyphase, models, tmp_path):
    np.save(tmp_path / "x.npy", noise(1, 20, 200))
    for name, more in (("whole", ()), ("tiled", ("--tile", "17"))):
        polyphase("run", models["vocoder"], "--input", tmp_path / "x.npy", "--output", tmp_path / f"{name}.wav", *more)
    assert (tmp_path / "whole.wav").read_bytes() == (tmp_path / "tiled.wav").read_bytes()


def test_archives_are_held_in_memory(polyphase, models, tmp_path):
    np.savez(tmp_path / "in.npz", x=noise(1, 3, 64, 96))
    outputs = []
    for more in ((), ("--tile", "16")):
        polyphase("run", models["unet"], "--inputs", tmp_path / "in.npz", "--outputs", tmp_path / "out.npz", *more)
        outputs.append((tmp_path / "out.npz").read_bytes())
    assert outputs[0] == outputs[1]


def test_a_pipe_hears_nothing_but_the_last_line(polyphase, models, tmp_path):
    np.save(tmp_path / "x.npy", noise(1, 3, 128, 128))
    done = polyphase("run", models["unet"], "--input", tmp_path / "x.npy", "--tile", "32")
    assert done.stdout.splitlines()[1].split() == ["y", "f32", "1x3x128x128", str(3 * 128 * 128 * 4)]
    assert re.fullmatch(r"ran .*unet.ppe in .* on \d+ threads?: 16 tiles \(H by 32, W by 32\), .*iB each, halos add [0-9.]+ %\n", done.stderr)


# In an interpreter of its own: a program begins with the peak of the process that starts it.
PEAK = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, capture_output=True); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"


def peak_kib(polyphase, *words):
    done = subprocess.run([sys.executable, "-S", "-c", PEAK, str(polyphase.path), *map(str, words)], capture_output=True, text=True, check=True)
    return int(done.stdout)


def test_memory_is_that_of_a_tile(polyphase, models, tmp_path):
    np.save(tmp_path / "x.npy", noise(1, 3, 1600, 1200))
    words = ("run", models["unet"], "--input", tmp_path / "x.npy", "--output", tmp_path / "y.npy", "--threads", "1")
    whole = peak_kib(polyphase, *words)
    tiled = peak_kib(polyphase, *words, "--tile", "auto", "--memory", "24M")
    assert tiled < 90 << 10 < 300 << 10 < whole
