"""Writes safetensors files as the package of that name does, which the tests do without."""

from __future__ import annotations

import json
import pathlib

import torch

NAMES = {torch.float32: "F32", torch.bfloat16: "BF16", torch.float16: "F16", torch.int64: "I64", torch.bool: "BOOL"}


def safetensors(path: pathlib.Path, tensors: dict[str, torch.Tensor], pad: bool = True):
    """A file as safetensors.torch.save_file writes it."""
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, tensor in tensors.items():
        raw = tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        header[name] = {"dtype": NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8 if pad else 1 - len(text) % 2)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path
