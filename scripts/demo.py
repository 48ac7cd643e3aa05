"""Enlarges a photograph three times with a trained network and shows it beside bicubic interpolation; `make demo` calls it.

    photo ──shrink──▶ small ──┬─ bicubic ─────────────────────────▶ left half
                              └─ Y: polyphase run network · Cb, Cr: bicubic ▶ right half

Everything but the resampling of colours is done by the command line, as a user would call it.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
from PIL import Image, ImageDraw

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCALE = 3
BORDER = 6  # pixels left out of the comparison on each side


def polyphase(program: pathlib.Path, *arguments: str) -> str:
    done = subprocess.run([str(program), *arguments], text=True, capture_output=True, check=False)
    if done.returncode != 0:
        sys.exit(f"demo: polyphase {' '.join(arguments)} failed:\n{done.stderr}")
    return done.stdout


def luminance(photo: Image.Image) -> np.ndarray:
    """Y of full-range BT.601 YCbCr, in [0, 1], not rounded."""
    return (np.asarray(photo.convert("RGB"), np.float64) @ np.array([0.299, 0.587, 0.114])) / 255


def psnr(found: np.ndarray, expected: np.ndarray) -> float:
    """Peak signal-to-noise ratio in dB."""
    inside = (slice(BORDER, -BORDER), slice(BORDER, -BORDER))
    error = np.clip(found, 0, 1)[inside] - expected[inside]
    return float(-10 * np.log10(np.mean(error * error)))


def with_luminance(y: np.ndarray, colours: Image.Image) -> Image.Image:
    """The picture with this luminance and the other's colours."""
    _, cb, cr = colours.convert("YCbCr").split()
    grey = Image.fromarray(np.round(np.clip(y, 0, 1) * 255).astype(np.uint8))
    return Image.merge("YCbCr", (grey, cb, cr)).convert("RGB")


def side_by_side(left: Image.Image, right: Image.Image, words: tuple[str, str]) -> Image.Image:
    gap, head = 6, 24
    sheet = Image.new("RGB", (left.width + gap + right.width, left.height + head), "white")
    draw = ImageDraw.Draw(sheet)
    for x, picture, text in ((0, left, words[0]), (left.width + gap, right, words[1])):
        sheet.paste(picture, (x, head))
        draw.text((x + 4, 5), text, fill="black")
    return sheet


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photo", type=pathlib.Path, default=ROOT / "models" / "demo" / "astronaut.png")
    parser.add_argument("--network", type=pathlib.Path, default=ROOT / "models" / "fsrcnn_x3" / "fsrcnn_x3.onnx")
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build" / "release" / "apps" / "cli" / "polyphase")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "out")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    photo = Image.open(options.photo).convert("RGB")
    photo = photo.crop((0, 0, photo.width - photo.width % SCALE, photo.height - photo.height % SCALE))
    small = photo.resize((photo.width // SCALE, photo.height // SCALE), Image.Resampling.BICUBIC)
    bicubic = small.resize(photo.size, Image.Resampling.BICUBIC)

    engine = options.out / (options.network.stem + ".ppe")
    started = time.monotonic()
    polyphase(options.program, "compile", str(options.network), "-o", str(engine))
    compile_s = time.monotonic() - started
    ports = json.loads(polyphase(options.program, "inspect", str(engine), "--json"))
    name_in, name_out = ports["inputs"][0]["name"], ports["outputs"][0]["name"]
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/in.npy", luminance(small).astype(np.float32)[None, None])
        polyphase(options.program, "run", str(engine), "--input", f"{name_in}={folder}/in.npy", "--output", f"{name_out}={folder}/out.npy")
        y = np.load(f"{folder}/out.npy")[0, 0].astype(np.float64)
    shape = f"{name_in}=1x1x{small.height}x{small.width}"
    bench = json.loads(polyphase(options.program, "bench", str(engine), "--shape", shape, "--json"))
    explain = json.loads(polyphase(options.program, "explain", str(engine), "--shape", shape, "--json"))
    device = json.loads(polyphase(options.program, "devices", "--json"))["devices"][0]

    original = luminance(photo)
    gain = {"bicubic": psnr(luminance(bicubic), original), "network": psnr(y, original)}
    sheet = side_by_side(
        bicubic, with_luminance(y, bicubic), (f"bicubic  {gain['bicubic']:.2f} dB", f"network on Polyphase  {gain['network']:.2f} dB")
    )
    target = options.out / "demo.png"
    sheet.save(target)

    print(f"photo      {options.photo.name}, {small.width}x{small.height} enlarged to {photo.width}x{photo.height}")
    print(f"bicubic    {gain['bicubic']:.2f} dB PSNR against the original")
    print(f"network    {gain['network']:.2f} dB ({gain['network'] - gain['bicubic']:+.2f} dB), {options.network.name}")
    print(f"time       compiled in {compile_s * 1e3:.0f} ms, runs in {bench['median_ms']:.2f} ms (median of {bench['runs']})")
    print(f"ran on     {device['name']}, {device['target']}, {device['cores']} cores")
    for step in explain["steps"]:
        print(f"           {step['operation'][:52]:<52} {step['kernel']} ({100 * step['share']:.0f} %)")
    print(f"picture    {target}")


if __name__ == "__main__":
    main()
