"""Exports a family with either of PyTorch's ONNX exporters, static or dynamic."""

from __future__ import annotations

import pathlib
import warnings

import torch

from networks import Family

EXPORTERS = ("dynamo", "torchscript")


def export_onnx(family: Family, path: pathlib.Path, exporter: str, dynamic: bool, opset: int | None = None) -> pathlib.Path:
    """Writes the family's module as ONNX with the given exporter; input names are the family's, the output is `out`."""
    names = list(family.inputs)
    arguments = tuple(family.inputs.values())
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        if exporter == "dynamo":
            shapes = None
            if dynamic:
                shapes = tuple({axis: torch.export.Dim.AUTO for axis in family.dynamic[name]} for name in names)
            torch.onnx.export(
                family.module, arguments, str(path), dynamo=True, input_names=names, output_names=["out"], dynamic_shapes=shapes,
                opset_version=opset or 18, external_data=False, verbose=False,
            )
        else:
            axes = {name: dict(family.dynamic[name]) for name in names} if dynamic else None
            torch.onnx.export(
                family.module, arguments, str(path), dynamo=False, input_names=names, output_names=["out"], dynamic_axes=axes,
                opset_version=opset or 17,
            )
    return path
