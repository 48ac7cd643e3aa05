#!/usr/bin/env python3
"""Measures fsrcnn_x3.onnx on held-out photographs, and checks that ONNX and PyTorch agree.

    evaluate.py PHOTO...        prints PSNR of Y in dB for bicubic and for the network, a row for each photograph

The photograph is shrunk to a third, enlarged again in both ways and compared with itself; `quality.py` says how.
It fails where the two exports differ by more than rounding, or where their sizes do not follow the photograph's.
"""
import pathlib
import sys

import numpy as np
import onnxruntime
import torch

import quality

FOLDER = pathlib.Path(__file__).parent
TOLERANCE = 2e-5  # of a range of 1; one step of an 8-bit picture is 4e-3


def main(paths: list[str]) -> int:
    session = onnxruntime.InferenceSession(FOLDER / "fsrcnn_x3.onnx", providers=["CPUExecutionProvider"])
    module = torch.export.load(FOLDER / "fsrcnn_x3.pt2").module()
    print(f"{'photo':28} {'size':>11} {'bicubic':>8} {'network':>8} {'gain':>6}   ONNX - PyTorch")
    failed = False
    for path in map(pathlib.Path, paths):
        photo = quality.load_cropped(path)
        small, expected = quality.shrink(photo), quality.luminance(photo)
        y = quality.luminance(small).astype(np.float32)[None, None]
        (found,) = session.run(["y_x3"], {"y": y})
        with torch.no_grad():
            difference = np.abs(found - module(torch.from_numpy(y)).numpy()).max()
        failed |= found.shape[2:] != expected.shape or not difference < TOLERANCE
        bicubic = quality.psnr(quality.luminance(quality.enlarge_bicubic(small)), expected)
        network = quality.psnr(found[0, 0].astype(np.float64), expected)
        print(f"{path.stem:28} {photo.width:>5} x {photo.height:<4} {bicubic:8.2f} {network:8.2f} "
              f"{network - bicubic:+6.2f}   {difference:.1e}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) if sys.argv[1:] else print(__doc__) or 2)
