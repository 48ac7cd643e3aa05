"""Small uses of each ATen overload that the importer of programs takes: the call, and its operands. One file per kind."""

from torch_cases import complex, data, elements, layers, reductions, shapes
from torch_cases.case import CASES, Case

__all__ = ["CASES", "Case", "complex", "data", "elements", "layers", "reductions", "shapes"]
