"""Random ONNX models: ten and more operators of the whole list, sizes known and dynamic, branches and loops.

A size is a pair: what it is in the first and in the second run of the model; a pair of different numbers is a dynamic size.
Each tensor carries what is known of its elements: the largest magnitude, and whether they are integers that every summation
order computes exactly. Operators that jump (Floor, ArgMax, comparisons) take exact tensors only, so that rounding never decides.
"""
from . import elementwise, layers, movement, products, signals, quantised, regions, control  # noqa: F401: in this order their rules are drawn
from .maker import LEFT_OUT, Maker

__all__ = ["LEFT_OUT", "Maker"]
