"""Hostile and broken ONNX models by name (CASES); `hostile_models.py` writes them as files. One file per kind."""

from hostile import containers, convolutions, files, operators
from hostile.parts import CASES

__all__ = ["CASES", "containers", "convolutions", "files", "operators"]
