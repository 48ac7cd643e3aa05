"""Modules without what another engine cannot take, for people who stay in PyTorch: layers are exchanged, other calls rewritten where they are made."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from .._errors import UnsupportedError
from ._judge import quiet
from ._legal_calls import (OVERLOADS, Call, Geometry, Limits, call_legally, call_of, can_be_called_legally, entries, grown_by_zeros, limits_of, problems, says_output_padding,
                           spread_taps, spreads)

_LAYERS = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
_OVERLOADS = {str(overload).removeprefix("aten."): axes for axes, overload in OVERLOADS.items()}
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


class LegalConvTranspose(nn.Module):
    """A transposed convolution without output_padding and, where it is asked for, without dilation. Its parameters are those of the layer that
    it replaces; only a dilated kernel is larger, by taps of 0."""

    def __init__(self, layer: nn.modules.conv._ConvTransposeNd, spread: bool):
        super().__init__()
        self.layer = f"{type(layer).__name__}({layer.extra_repr()})"
        self.stride, self.padding = list(layer.stride), list(layer.padding)
        self.output_padding, self.groups = list(layer.output_padding), layer.groups
        self.spans = [(k - 1) * d + 1 for k, d in zip(layer.kernel_size, layer.dilation)]
        self.dilation = [1] * len(self.stride) if spread else list(layer.dilation)
        self.weight, self.bias = layer.weight, layer.bias
        if spread:
            self.weight = nn.Parameter(spread_taps(layer.weight.detach(), layer.dilation).contiguous(), layer.weight.requires_grad)

    def extra_repr(self) -> str:
        return f"for {self.layer}"

    def forward(self, x: torch.Tensor, output_size: Sequence[int] | None = None) -> torch.Tensor:
        axes = len(self.stride)
        extra, most = self.output_padding, None
        if output_size is not None:  # the sizes may be open, so there is room for whatever is legal
            wanted = list(output_size)[-axes:]
            low = [(x.shape[i - axes] - 1) * s - 2 * p + span for i, (s, p, span) in enumerate(zip(self.stride, self.padding, self.spans))]
            extra, most = [size - least for size, least in zip(wanted, low)], [s - 1 for s in self.stride]
            if not torch.compiler.is_compiling():  # traced sizes would have to be proved to be in range
                high = [least + s - 1 for least, s in zip(low, self.stride)]
                if any(not least <= size <= top for size, least, top in zip(wanted, low, high)):
                    raise ValueError(f"requested an output size of {wanted}, but valid sizes range from {low} to {high} (for an input of {x.shape[-axes:]})")
        return grown_by_zeros(x, self.weight, self.bias, Geometry(self.stride, self.padding, extra, self.dilation), self.groups, most)


def _whole_numbers(like: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return torch.randint(-3, 4, like.shape, generator=generator).double()


def _expect_same_layer(layer: nn.Module, spread: bool) -> None:
    """Both on whole numbers in double precision, where every order of sums is exact: equal bit for bit."""
    generator = torch.Generator().manual_seed(1)
    one = copy.deepcopy(layer).cpu().double().eval()
    with torch.no_grad():
        for parameter in one.parameters():
            parameter.copy_(_whole_numbers(parameter, generator))
        other = LegalConvTranspose(one, spread)
        for size in (4, 7):
            sizes = [size + 2 * p // s for p, s in zip(layer.padding, layer.stride)]
            x = torch.randint(-3, 4, (2, layer.in_channels, *sizes), generator=generator).double()
            if not torch.equal(one(x), other(x)):
                raise UnsupportedError(f"what was made of {layer} is not the same.", hint="That is a defect of Polyphase: report the layer.")


def _expect_same_call(func: Any, call: Call, limits: Limits) -> None:
    """The same of a call, with operands of its sizes."""
    generator = torch.Generator().manual_seed(1)
    one = Call(call.axes, _whole_numbers(call.x, generator), _whole_numbers(call.weight, generator),
               None if call.bias is None else _whole_numbers(call.bias, generator), call.groups, call.geometry)
    wanted = func(one.x, one.weight, one.bias, call.geometry.stride, call.geometry.padding, call.geometry.output_padding, call.groups, call.geometry.dilation)
    if not torch.equal(one.legal(limits), wanted):
        raise UnsupportedError(f"what was made of a call with {call.geometry} is not the same.", hint="That is a defect of Polyphase: report the call.")


class _Watch(TorchFunctionMode):
    """Which modules call what the target does not take, and which layers are given an output_size; by name."""

    def __init__(self, limits: Limits) -> None:
        super().__init__()
        self.limits = limits
        self.calling: set[str] = set()
        self.may_compute: set[str] = set()  # call a function with an output_padding, which may follow from sizes
        self._compared: set[str] = set()
        self.sized: set[str] = set()
        self._running: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        call = call_of(func, args, kwargs or {})
        if call is not None and self._running and says_output_padding(func, args, kwargs or {}):
            self.may_compute.add(self._running[-1])
        if call is not None and self._running and problems(call.geometry, self.limits):
            self.calling.add(self._running[-1])
            form = f"{call.geometry} {call.groups} {call.x.shape} {call.weight.shape}"
            if form not in self._compared:
                self._compared.add(form)
                _expect_same_call(func, call, self.limits)
        return func(*args, **(kwargs or {}))

    @contextlib.contextmanager
    def looking(self, net: nn.Module) -> Iterator[None]:
        hooks = []
        for name, module in net.named_modules():
            def enter(module: nn.Module, args: Any, kwargs: Any, name: str = name) -> None:
                self._running.append(name)
                if isinstance(module, nn.modules.conv._ConvTransposeNd) and (len(args) > 1 or kwargs.get("output_size") is not None):
                    self.sized.add(name)

            def leave(*_: Any) -> None:
                self._running.pop()

            if not isinstance(module, torch.jit.ScriptModule):  # last in and first out: other hooks run outside of forward
                hooks.append(module.register_forward_pre_hook(enter, with_kwargs=True))
                hooks.append(module.register_forward_hook(leave, prepend=True))
        try:
            with torch.no_grad(), self:
                yield
        finally:
            for hook in hooks:
                hook.remove()


def _is_plain(layer: nn.Module) -> bool:
    """Whether nothing but PyTorch's own forward looks at its parameters: hooks and parametrisations make weights out of others."""
    return type(layer) in _LAYERS and "forward" not in vars(layer) and not any(getattr(layer, hooks) for hooks in _HOOKS)


def legalise(net: nn.Module, example: Sequence[Any] | None, target: str) -> nn.Module:
    limits = limits_of(target)
    watch = _Watch(limits)
    if example is not None:
        probe = copy.deepcopy(net) if any(module.training for module in net.modules()) else net  # training changes what a module has seen
        with watch.looking(probe):
            probe(*example)
        if any(not isinstance(net.get_submodule(name), _LAYERS) for name in watch.may_compute - watch.calling):
            watch.calling |= _with_open_padding(probe, example)
    out = copy.deepcopy(net)
    made: dict[nn.Module, nn.Module] = {}  # a module may have several names
    for name, module in list(out.named_modules(remove_duplicate=False)):
        legal = made.get(module)
        if legal is None:
            if not _must_change(module, name, watch):
                continue
            legal = made[module] = _exchanged(module, limits) if _is_plain(module) else call_legally(module, target)
        if not name:
            out = legal
        elif legal is not module:
            parent, _, leaf = name.rpartition(".")
            setattr(out.get_submodule(parent), leaf, legal)
    left = check_module(out, example, [target]) if example is not None else []
    if left:
        raise UnsupportedError(f"{left[0]['why']}, in a call that cannot be reached: {left[0]['where'] or left[0]['node']}.",
                               hint="Call torch.nn.functional or torch.nn.ConvTranspose1d, 2d or 3d from the forward of a class, not from a graph, a script or an instance's own forward.")
    return out


def _with_open_padding(net: nn.Module, example: Sequence[Any]) -> set[str]:
    """Modules that call a transposed convolution whose output_padding follows from sizes, though it is 0 for the example's; by name. They are
    seen where PyTorch exports the module with all sizes open."""
    shapes = torch.utils._pytree.tree_map(lambda one: {axis: torch.export.Dim.AUTO for axis in range(one.dim())} if isinstance(one, torch.Tensor) else None, tuple(example))
    try:
        with quiet():
            program = torch.export.export(net, tuple(example), dynamic_shapes=shapes)
    except Exception:  # as it is with numbers
        return set()
    out = set()
    for node, axes in _transposed_convolutions(program):
        stack = list(node.meta.get("nn_module_stack", {}).values())
        if stack and len(node.args) > 5 and not all(isinstance(q, int) for q in entries(node.args[5], axes)):
            out.add(stack[-1][0])
    return out


def _must_change(module: nn.Module, name: str, watch: _Watch) -> bool:
    if not can_be_called_legally(module):
        return False
    if name in watch.calling or name in watch.sized:
        return True
    return isinstance(module, nn.modules.conv._ConvTransposeNd) and bool(problems(_geometry_of(module), watch.limits))


def _geometry_of(layer: nn.modules.conv._ConvTransposeNd) -> Geometry:
    return Geometry(list(layer.stride), list(layer.padding), list(layer.output_padding), list(layer.dilation))


def _exchanged(layer: nn.modules.conv._ConvTransposeNd, limits: Limits) -> nn.Module:
    spread = spreads(_geometry_of(layer), limits)
    _expect_same_layer(layer, spread)
    return LegalConvTranspose(layer, spread).train(layer.training)


def _transposed_convolutions(program: torch.export.ExportedProgram) -> Iterator[tuple[torch.fx.Node, int]]:
    """With their spatial axes; also those in branches, loops and regions of another mode of gradients, which are graphs of their own."""
    for module in program.graph_module.modules():
        for node in module.graph.nodes if isinstance(module, torch.fx.GraphModule) else ():
            axes = _OVERLOADS.get(str(node.target).removeprefix("aten."))
            if node.op == "call_function" and axes is not None:
                yield node, axes


def check_module(net: nn.Module, example: Sequence[Any], targets: Sequence[str]) -> list[dict[str, str]]:
    limits = {target: limits_of(target) for target in targets}
    program = torch.export.export(net, tuple(example))
    out = []
    for node, axes in _transposed_convolutions(program):
        given = [*node.args, *[None] * 8]
        stride, padding, output_padding, dilation = (entries(default if value is None else value, axes) for value, default in
                                                     ((given[3], 1), (given[4], 0), (given[5], 0), (given[7], 1)))
        geometry = Geometry(stride, padding, output_padding, dilation)
        where = [line.strip() for line in (node.meta.get("stack_trace") or "").splitlines() if line.strip()]
        for target in targets:
            for rule, why in problems(geometry, limits[target]):
                out.append({"target": target, "node": node.name, "operation": str(node.target), "rule": rule, "why": why, "source": limits[target].source,
                            "where": where[-1] if where else ""})
    return out
