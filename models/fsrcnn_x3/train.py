#!/usr/bin/env python3
"""Trains the x3 network on a GPU and exports it.

    collect_photos.py --out PHOTOS
    train.py --photos PHOTOS --out DIR                             train, then write fsrcnn_x3.onnx and .pt2
    train.py --photos PHOTOS --out DIR --weights fsrcnn_x3.pt2     export these weights again, without training

PHOTOS/train is trained on; PHOTOS/held_out is only measured, and no choice is made by it. All photographs lie on the
GPU as bytes at three sizes; each step cuts random patches there, turns and mirrors them, and makes their small versions
with the filter that `quality.shrink` uses. Three stages, each a line of STAGES: Charbonnier loss, then squared error
(which is what PSNR measures), then the same without TF32, so that the weights settle in the arithmetic that the network
is run in. What is kept is the running average of the weights.
"""
import argparse
import copy
import math
import pathlib
import time

import numpy as np
import torch
from PIL import Image
from torch.nn import functional as F

import quality
from network import SCALE, Fsrcnn

PATCH = 48           # side of a low-resolution patch
MARGIN = 4           # how far the bicubic filter looks beyond the high-resolution patch
SIDE = SCALE * PATCH + 2 * MARGIN
SIZES = (1.0, 0.7, 0.5)
BATCH = 64
GRID = 16            # places lie on a grid of so many pixels
FLAT_SHARE = 0.5     # of the patches, those with the least detail are never drawn
# name, share of the steps, loss, TF32 allowed, learning rate at its start and end (cosine between)
STAGES = (("charbonnier", 0.50, "charbonnier", True, 1.5e-3, 4e-4),
          ("squared error", 0.40, "squared", True, 4e-4, 2e-5),
          ("full precision", 0.10, "squared", False, 2e-5, 1e-6))
WARM_UP = 200        # steps
AVERAGE = 0.999


class Photos:
    """All photographs end to end in one byte tensor, and the list of places that patches are cut from."""

    def __init__(self, folder: pathlib.Path, device: str):
        planes, places, detail, start = [], [], [], 0
        for path in sorted(folder.iterdir()):
            full = Image.open(path).convert("RGB")
            for size in SIZES:
                photo = full.resize((round(full.width * size), round(full.height * size)), Image.Resampling.BICUBIC)
                plane = np.rint(quality.luminance(photo) * 255).astype(np.uint8)
                if min(plane.shape) <= SIDE:
                    continue
                y, x, slope = mean_slopes(plane)
                places.append(np.stack([start + y * plane.shape[1] + x, np.full_like(y, plane.shape[1])], 1))
                detail.append(slope)
                planes.append(plane.reshape(-1))
                start += plane.size
        order = np.argsort(np.concatenate(detail), kind="stable")
        kept = np.sort(order[int(len(order) * FLAT_SHARE):])
        self.bytes = torch.from_numpy(np.concatenate(planes)).to(device)
        self.places = torch.from_numpy(np.concatenate(places)[kept]).to(device)
        self.row = torch.arange(SIDE, device=device)
        self.filter = bicubic_filter(device)

    def draw(self, count: int):
        """`count` pairs (small, large) of luminance patches, N x 1 x P x P and N x 1 x 3P x 3P."""
        chosen = torch.randint(len(self.places), (count,), device=self.bytes.device)
        corner, width = self.places[chosen].unbind(1)
        index = corner[:, None, None] + self.row[None, :, None] * width[:, None, None] + self.row[None, None, :]
        wide = (self.bytes[index].float() / 255).unsqueeze(1)
        eighths = []  # the eight symmetries of the square, one for each eighth of the batch
        for number, part in enumerate(wide.chunk(8)):
            part = torch.rot90(part, number % 4, (2, 3))
            eighths.append(part.flip(3) if number >= 4 else part)
        wide = torch.cat(eighths)
        small = F.conv2d(F.conv2d(wide, self.filter[None, None, :, None], stride=(SCALE, 1)),
                         self.filter[None, None, None, :], stride=(1, SCALE))
        small = torch.round(small.clamp(0, 1) * 255) / 255
        return small, wide[:, :, MARGIN:-MARGIN, MARGIN:-MARGIN].contiguous()


def mean_slopes(plane: np.ndarray):
    """The corners (y, x) of a grid of squares of SIDE pixels, and each one's mean difference of neighbouring pixels."""
    signed = plane.astype(np.int64)
    table = np.zeros_like(signed)  # a summed-area table: its row 0 and column 0 stay zero
    table[1:, 1:] = np.abs(np.diff(signed, axis=0))[:, :-1] + np.abs(np.diff(signed, axis=1))[:-1]
    table = table.cumsum(0).cumsum(1)
    y, x = (grid.reshape(-1) for grid in np.meshgrid(np.arange(0, plane.shape[0] - SIDE, GRID),
                                                     np.arange(0, plane.shape[1] - SIDE, GRID), indexing="ij"))
    total = table[y + SIDE, x + SIDE] - table[y, x + SIDE] - table[y + SIDE, x] + table[y, x]
    return y, x, total / SIDE**2


def bicubic_filter(device: str) -> torch.Tensor:
    """Pillow's antialiased bicubic (a = -1/2) for a third of the size: 11 taps around the middle of every three."""
    distance = (torch.arange(11, dtype=torch.float64) - 5).abs() / SCALE
    near = 1.5 * distance ** 3 - 2.5 * distance ** 2 + 1
    far = -0.5 * distance ** 3 + 2.5 * distance ** 2 - 4 * distance + 2
    taps = torch.where(distance < 1, near, far)
    return (taps / taps.sum()).float().to(device)


def loss_of(kind: str, found: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    error = found.float() - expected
    return (error * error).mean() if kind == "squared" else torch.sqrt(error * error + 1e-6).mean()


class Step:
    """One training step. On a GPU it is recorded once, after three live ones, and replayed without Python's cost."""

    def __init__(self, photos: Photos, network: Fsrcnn, average: Fsrcnn, optimiser: torch.optim.Optimizer, kind: str):
        self.photos, self.network, self.average, self.optimiser, self.kind = photos, network, average, optimiser, kind
        self.calls, self.graph, self.loss = 0, None, None
        optimiser.zero_grad(set_to_none=True)

    def live(self):
        small, large = self.photos.draw(BATCH)
        loss = loss_of(self.kind, self.network(small), large)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        self.optimiser.step()
        with torch.no_grad():
            torch._foreach_lerp_(list(self.average.parameters()), list(self.network.parameters()), 1 - AVERAGE)
        return loss.detach()

    def __call__(self):
        self.calls += 1
        if not torch.cuda.is_available():
            self.loss = self.live()
        elif self.calls <= 3:
            aside = torch.cuda.Stream()
            aside.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(aside):
                self.loss = self.live()
            torch.cuda.current_stream().wait_stream(aside)
        else:
            if self.graph is None:
                self.graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(self.graph):
                    self.loss = self.live()
            self.graph.replay()


def train(photos: Photos, steps: int, seed: int, device: str, report) -> Fsrcnn:
    torch.manual_seed(seed)
    torch.backends.cudnn.benchmark = True
    network = Fsrcnn().to(device)
    average = copy.deepcopy(network).requires_grad_(False)
    optimiser = torch.optim.Adam(network.parameters(), lr=torch.tensor(0.0, device=device), betas=(0.9, 0.99),
                                 fused=True, capturable=device == "cuda")
    done = 0
    for name, share, kind, tf32, first_rate, last_rate in STAGES:
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
        step, count, began = Step(photos, network, average, optimiser, kind), round(steps * share), time.time()
        for k in range(count):
            rate = last_rate + (first_rate - last_rate) * (1 + math.cos(math.pi * k / count)) / 2
            optimiser.param_groups[0]["lr"].fill_(rate * min(1, (done + 1) / WARM_UP))
            step()
            done += 1
            if (k + 1) % 4000 == 0 or k + 1 == count:
                seconds = time.time() - began
                report(f"{name:14} step {k + 1:6} of {count}  loss {step.loss.item():.6f}  {seconds:6.1f} s", average)
    return average


def measure(network: Fsrcnn, folder: pathlib.Path, device: str) -> str:
    """One line: the gain over bicubic in dB on each held-out photograph."""
    gains = []
    for path in sorted(folder.iterdir()):
        photo = quality.load_cropped(path)
        small, expected = quality.shrink(photo), quality.luminance(photo)
        y = torch.from_numpy(quality.luminance(small)).float().to(device)[None, None]
        with torch.no_grad():
            found = network(y)[0, 0].double().cpu().numpy()
        gain = quality.psnr(found, expected) - quality.psnr(quality.luminance(quality.enlarge_bicubic(small)), expected)
        gains.append(f"{path.stem.split('__')[-1]} {gain:+.2f}")
    return "  ".join(gains)


def export(network: Fsrcnn, out: pathlib.Path) -> None:
    network = network.cpu().eval()
    example = torch.rand(2, 1, 20, 24)
    sizes = {0: torch.export.Dim("N", min=1), 2: torch.export.Dim("H", min=1), 3: torch.export.Dim("W", min=1)}
    program = torch.export.export(network, (example,), dynamic_shapes=({**sizes},), strict=False)
    for node in program.graph.nodes:  # else both files would name the folders of the machine that wrote them
        node.meta.pop("stack_trace", None)
    torch.export.save(program, out / "fsrcnn_x3.pt2")
    onnx = torch.onnx.export(network, (example,), dynamo=True, opset_version=18, input_names=["y"],
                             output_names=["y_x3"], dynamic_shapes=({**sizes},), verbose=False)
    for node in onnx.model.graph:
        node.metadata_props.clear()
        for value in node.outputs:
            value.metadata_props.clear()
    onnx.save(out / "fsrcnn_x3.onnx", external_data=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=pathlib.Path, required=True, help="folder with train/ and held_out/")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder that receives both files")
    parser.add_argument("--weights", type=pathlib.Path, help="export these weights instead of training")
    parser.add_argument("--steps", type=int, default=80000)
    parser.add_argument("--seed", type=int, default=3)
    arguments = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    held_out = arguments.photos / "held_out"
    arguments.out.mkdir(parents=True, exist_ok=True)

    def report(line: str, network: Fsrcnn) -> None:
        print(f"{line}  | {measure(network, held_out, device)}", flush=True)

    if arguments.weights:
        network = Fsrcnn().to(device)
        network.load_state_dict(torch.export.load(arguments.weights).state_dict)
        report("loaded", network)
    else:
        began = time.time()
        photos = Photos(arguments.photos / "train", device)
        print(f"{len(photos.bytes) / 1e6:.0f} million pixels, {len(photos.places)} places, {time.time() - began:.1f} s")
        network = train(photos, arguments.steps, arguments.seed, device, report)
        print(f"{time.time() - began:.0f} s in all")
    export(network, arguments.out)


if __name__ == "__main__":
    main()
