"""What Polyphase takes no part in, of the calls that PyTorch's own samples make: operator → why, as the message has it."""
from __future__ import annotations

import re

REFUSALS: list[tuple[str, str]] = [
    # (a pattern of the use's operator, a pattern of the message)
    (r"nn\.functional\.(batch_norm|instance_norm)|native_batch_norm", r"is in training mode: it normalises by its operand's statistics"),
    (r"nn\.functional\.batch_norm", r"without an axis of channels"),
    (r"nn\.functional\.(scaled_dot_product_attention|multi_head_attention_forward)|.*dropout.*", r"drops weights at random|dropout is in training mode"),
    (r"_upsample.*_aa", r"antialias=True together with align_corners=True"),
    (r"nn\.functional\.(interpolate|upsample).*|_upsample.*", r"interpolation of integers, which PyTorch rounds in steps of its own"),
    (r"scatter.*", r"scatter into a single number|scatter_reduce of integers without include_self|scatter_elements: operand 'x' must be a float or an integer, found bool"),
    (r"index_(add|copy|fill|select|put|reduce).*", r"an index into a single number|scatter_nd: operand 'x' must be a float or an integer, found bool|of a tensor of rank 0"),
    (r"gather", r"'indices' must have the rank of 'x'"),  # PyTorch takes any empty index
    (r"searchsorted|bucketize", r"with a sorter"),
    (r"as_strided.*", r"do not lie side by side in memory|memory that the program does not show"),  # a part of a larger tensor comes in
    (r"complex|polar|view_as_complex", r"complex\(\) of f16|view_as_complex of f16|a tensor is complex"),  # complex halves
    (r"nn\.functional\.adaptive_max_pool\dd", r"is not computed, but something uses it"),  # the places of the maxima
    (r"i?stft", r"a window of complex numbers|return_complex=True"),
    (r"einsum", r"the program declares the result as i64"),  # of u8, where PyTorch's sum is i64
]


def is_listed(label: str, reason: str) -> bool:
    operator = label.split()[0]
    return any(re.fullmatch(name, operator) and re.search(message, reason) for name, message in REFUSALS)
