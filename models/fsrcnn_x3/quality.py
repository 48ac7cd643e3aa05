"""How a photograph is made small, enlarged and judged: the one definition that training and evaluation share."""
import pathlib

import numpy as np
from PIL import Image

SCALE = 3
BORDER = 6  # pixels left out on each side


def luminance(photo: Image.Image) -> np.ndarray:
    """Y of full-range BT.601 YCbCr (as in JPEG), in [0, 1] and not rounded."""
    return np.asarray(photo.convert("RGB"), np.float64) @ np.array([0.299, 0.587, 0.114]) / 255


def load_cropped(path: pathlib.Path) -> Image.Image:
    """The photograph without the last rows and columns that make its size no multiple of the scale."""
    photo = Image.open(path).convert("RGB")
    return photo.crop((0, 0, photo.width - photo.width % SCALE, photo.height - photo.height % SCALE))


def shrink(photo: Image.Image) -> Image.Image:
    """A third of the size, with Pillow's antialiased bicubic filter: 8-bit RGB, as a web page would have it."""
    return photo.resize((photo.width // SCALE, photo.height // SCALE), Image.Resampling.BICUBIC)


def enlarge_bicubic(small: Image.Image) -> Image.Image:
    return small.resize((small.width * SCALE, small.height * SCALE), Image.Resampling.BICUBIC)


def psnr(found: np.ndarray, expected: np.ndarray) -> float:
    """Peak signal-to-noise ratio of luminance in dB; values outside [0, 1] are clipped first, as in a picture."""
    inside = (slice(BORDER, -BORDER), slice(BORDER, -BORDER))
    error = np.clip(found, 0, 1)[inside] - expected[inside]
    return float(-10 * np.log10(np.mean(error * error)))
