"""PyTorch's own samples of its operators (torch.testing._internal.opinfo) as uses: those whose calls consist of overloads that the
importer has a converter for."""
from __future__ import annotations

import random
from collections.abc import Iterator

import torch
from batches import Use, quiet, tensors_of
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.int32, torch.uint8, torch.bool)
# Samples of more elements than this say nothing that smaller ones do not.
LARGEST = 1 << 16
# Which of equal elements is meant is left to PyTorch's implementation unless a stable order is asked for: their places are not compared, the
# elements there are.
OF_TIES = {"topk", "sort", "msort", "argsort", "kthvalue", "median", "nanmedian", "mode"}
# What is random has no numbers to compare.
RANDOM = {"bernoulli", "cauchy", "dropout", "empty", "exponential", "geometric", "log_normal", "multinomial", "normal", "poisson", "rand", "randint", "randn", "rrelu", "uniform"}


def operators() -> list:
    return [op for op in op_db if not any(word in RANDOM for word in op.name.replace(".", "_").split("_"))]


def parts_of(op, dtype: torch.dtype) -> Iterator[tuple[list, object]]:
    with quiet():
        for sample in op.sample_inputs("cpu", dtype, requires_grad=False):
            leaves, spec = pytree.tree_flatten(((sample.input, *sample.args), sample.kwargs))
            yield leaves, spec


def use_of(op, label: str, leaves: list, spec) -> Use | None:
    """None: nothing to compare, or too large."""
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    operands = [leaves[place].detach() for place in places]
    if not places or sum(operand.numel() for operand in operands) > LARGEST or any(operand.layout != torch.strided for operand in operands):
        return None

    def call(*given):
        filled = list(leaves)
        for place, tensor in zip(places, given):
            filled[place] = tensor
        args, kwargs = pytree.tree_unflatten(filled, spec)
        result = op.op(*args, **kwargs)
        if op.name not in OF_TIES or kwargs.get("stable"):
            return result
        if op.name == "argsort":
            axis = args[1] if len(args) > 1 else kwargs.get("dim", -1)
            return args[0].take_along_dim(result, axis) if args[0].dim() else result
        return result[0] if isinstance(result, tuple) else result

    return Use(label, call, operands)


def overloads_of(use: Use) -> frozenset[str]:
    """What PyTorch calls for it, before any is decomposed; nothing where it cannot be traced."""
    try:
        with quiet():
            graph = make_fx(use.call, tracing_mode="fake", pre_dispatch=True)(*use.operands).graph
    except Exception:  # noqa: BLE001: what cannot be traced cannot be exported
        return frozenset()
    return frozenset(str(node.target) for node in graph.nodes if isinstance(node.target, torch._ops.OpOverload))


def uses(claimed: set[str], seed: int, share: float = 1.0, most: int = 12, part: int | None = None, parts: int = 1) -> Iterator[Use]:
    """At most `most` samples of one operator and dtype; with `share` below 1 a seeded part of the pairs; `part` of `parts` of the operators."""
    rng = random.Random(seed)
    for op in operators()[slice(None) if part is None else slice(part, None, parts)]:
        for dtype in DTYPES:
            if dtype not in op.supported_dtypes("cpu") or rng.random() >= share:
                continue
            samples = list(parts_of(op, dtype))
            if len(samples) > most:
                samples = rng.sample(samples, most)
            for number, (leaves, spec) in enumerate(samples):
                label = f"{op.name}{'.' + op.variant_test_name if op.variant_test_name else ''} {str(dtype).removeprefix('torch.')} {number}"
                use = use_of(op, label, leaves, spec)
                if use is None:
                    continue
                needed = overloads_of(use)
                if needed and needed <= claimed and has_numbers(use):
                    yield use


def has_numbers(use: Use) -> bool:
    """False where PyTorch itself refuses the sample, or its result is complex."""
    try:
        with quiet():
            results = tensors_of(use.call(*[operand.clone() for operand in use.operands]))
    except Exception:  # noqa: BLE001
        return False
    return bool(results) and not any(result.is_complex() or result.is_sparse for result in results)
