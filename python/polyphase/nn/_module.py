"""Module: layers with parameters, which a PyTorch checkpoint fills."""

from __future__ import annotations

import contextvars
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .._at_once import AtOnce, is_array, leaves
from .._errors import ArgumentError
from .._network import Network, Tensor, _plain_array, dtype_name

_inside: contextvars.ContextVar[Any] = contextvars.ContextVar("polyphase.nn.inside", default=None)
_constants: weakref.WeakKeyDictionary[Network, dict[int, tuple[Parameter, Any, Tensor]]] = weakref.WeakKeyDictionary()
_names: weakref.WeakKeyDictionary[Network, set[str]] = weakref.WeakKeyDictionary()
_changes = 0  # of any parameter: engines that were made before are stale


class Parameter:
    """A weight: its shape, and its elements once they are set."""

    def __init__(self, shape: Sequence[int], dtype: Any = None, fill: float | None = None):
        self.shape = tuple(int(size) for size in shape)
        self.dtype = None if dtype is None else dtype_name(dtype)
        self.name = ""  # where it stands in the outermost module that was called
        self._value: Any = None
        if fill is not None:
            import numpy as np

            self._value = np.full(self.shape, fill, dtype=np.float32)

    @property
    def value(self) -> Any:
        """The elements, an array; None: not set yet."""
        return self._value

    @value.setter
    def value(self, array: Any) -> None:
        global _changes
        plain = _plain_array(array)
        if tuple(int(size) for size in plain.shape) != self.shape:
            raise ArgumentError(f"parameter '{self.name}' is given the shape {tuple(plain.shape)}; expected {self.shape}.", hint="Give a weight of this layer's sizes.")
        self._value = plain
        _changes += 1

    def constant(self, net: Network) -> Tensor:
        """The parameter in a network, once, under its name."""
        if self._value is None:
            raise ArgumentError(f"parameter '{self.name or 'weight'}' of shape {self.shape} has no elements yet.", hint="Use load_state_dict, or set its value.")
        known = _constants.setdefault(net, {})
        found = known.get(id(self))
        if found is None or found[1] is not self._value:
            made = net.add_constant(self._value, _free_name(net, self.name) if found is None else "")
            if self.dtype is not None and made.dtype != self.dtype:
                made = net.cast(made, to=self.dtype)
            known[id(self)] = found = (self, self._value, made)
        return found[2]

    def __repr__(self) -> str:
        return f"Parameter({self.name!r}, {list(self.shape)})"


def _free_name(net: Network, name: str) -> str:
    """Modules that are called by themselves all have a 'weight': the second of a network is 'weight.2'."""
    used = _names.setdefault(net, set())
    own, again = name, 2
    while own and own in used:
        own, again = f"{name}.{again}", again + 1
    used.add(own)
    return own


class Module:
    """A layer, or layers put together: subclasses have parameters and modules as attributes, and a method forward.

    Called on a Network's tensors it adds its layers to that network, with the parameters as constants under their names; called on arrays it
    runs at once, compiled for their dtypes and shapes, and the engine is kept. Elements of a parameter that are changed in place are not
    seen; its value is set anew, or load_state_dict is used.
    """

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes, in functions of polyphase.nn.functional and other modules."""
        raise NotImplementedError(f"{type(self).__name__} has no method forward.")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if _inside.get() is not None:
            return self.forward(*args, **kwargs)
        given = leaves((args, kwargs))
        for name, parameter in self._named():
            parameter.name = name
        if any(is_array(one) for one in given) and not any(isinstance(one, Tensor) for one in given):
            return self._at_once()(*args, **kwargs)
        networks = [one.network for one in given if isinstance(one, Tensor)]
        net = networks[0] if networks else Network.current()
        if net is None:
            raise ArgumentError(f"{type(self).__name__} is given neither tensors nor arrays, outside of a network.", hint="Give some, or call it inside of `with Network() as net:`.")
        return self._in(net, *args, **kwargs)

    def _in(self, net: Network, *args: Any, **kwargs: Any) -> Any:
        token = _inside.set(net)
        try:
            with net:
                return self.forward(*args, **kwargs)
        finally:
            _inside.reset(token)

    def _at_once(self) -> AtOnce:
        made = self.__dict__.get("_engines")
        if made is None or made[0] != _changes:
            made = (_changes, AtOnce(self._in, type(self).__name__))
            self.__dict__["_engines"] = made
        at_once: AtOnce = made[1]
        return at_once

    def weight_of(self, parameter: Parameter | None) -> Tensor | None:
        """A parameter as a tensor of the network that is being written; for forward."""
        net = _inside.get()
        if net is None:
            raise ArgumentError(f"forward of {type(self).__name__} is called by itself.", hint="Call the module.")
        return None if parameter is None else parameter.constant(net)

    # ------------------------------------------------------------ the registry

    def _children(self) -> Iterator[tuple[str, Module]]:
        for key, value in vars(self).items():
            if isinstance(value, Module):
                yield key, value

    def _named(self, prefix: str = "") -> Iterator[tuple[str, Parameter]]:
        for key, value in vars(self).items():
            if isinstance(value, Parameter):
                yield prefix + key, value
        for key, child in self._children():
            yield from child._named(f"{prefix}{key}.")

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """The parameters by the names that a checkpoint has for them."""
        return self._named()

    def parameters(self) -> Iterator[Parameter]:
        """The parameters, in the order of named_parameters."""
        for _, parameter in self._named():
            yield parameter

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """This module and those inside, by name."""
        yield prefix, self
        for key, child in self._children():
            yield from child.named_modules(f"{prefix}.{key}" if prefix else key)

    def state_dict(self) -> dict[str, Any]:
        """The parameters' elements by name."""
        return {name: parameter.value for name, parameter in self._named()}

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> None:
        """Sets the parameters: a PyTorch checkpoint of the same architecture as it is, or arrays by name.

        Weights under weight_norm, in either of PyTorch's spellings, are multiplied out. strict: names that are missing or surplus are an
        error, as a wrong shape always is; it names every one of them, and then nothing is changed.
        """
        wanted = dict(self._named())
        given = _arrays_of(state_dict, wanted)
        missing = [name for name in wanted if name not in given]
        surplus = [name for name in given if name not in wanted]
        wrong = [(name, tuple(given[name].shape), parameter.shape) for name, parameter in wanted.items() if name in given and tuple(given[name].shape) != parameter.shape]
        said = []
        if strict and surplus:
            said.append("Unexpected key(s) in state_dict: " + ", ".join(f'"{name}"' for name in surplus) + ".")
        if strict and missing:
            said.append("Missing key(s) in state_dict: " + ", ".join(f'"{name}"' for name in missing) + ".")
        said += [f"size mismatch for {name}: copying a param with shape {list(found)} from checkpoint, the shape in current model is {list(right)}." for name, found, right in wrong]
        if said:
            every = " ".join(said)
            raise ArgumentError(f"Error(s) in loading state_dict for {type(self).__name__}: {every}", hint="Give the checkpoint of this architecture.")
        for name, parameter in wanted.items():
            parameter.name = name
            if name in given:
                parameter.value = given[name]


_NORM_SPELLINGS = ((".parametrizations.weight.original0", ".parametrizations.weight.original1", ".weight"), (".weight_g", ".weight_v", ".weight"))


def _arrays_of(state_dict: Any, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The arrays by name; what the module does not ask for may be anything."""
    if not isinstance(state_dict, Mapping):
        raise ArgumentError(f"Expected state_dict to be dict-like, got {type(state_dict)}.", hint="Give module.state_dict(), or what torch.load or safetensors' load_file gave.")
    for name in state_dict:
        if not isinstance(name, str):
            raise ArgumentError(f"state_dict has the key {name!r:.60}.", hint="Keys are the names of parameters.")
    given = _without_weight_norm(state_dict)
    for name in wanted:
        if name in given:
            given[name] = _plain_array(given[name])
            if not is_array(given[name]):
                raise ArgumentError(f"state_dict has a {type(given[name]).__name__} under \"{name}\".", hint="Give tensors or arrays.")
    return given


def _without_weight_norm(state: Mapping[str, Any]) -> dict[str, Any]:
    """weight = g · v / |v|, the norm over the axes along which g has one element (Salimans and Kingma, 2016)."""
    out = dict(state)
    for name in list(state):
        for gain, direction, weight in _NORM_SPELLINGS:
            stem = name[:-len(gain)] if name.endswith(gain) else None
            if stem is None and name == gain[1:]:
                stem = ""
            if stem is None:
                continue
            other = (stem + direction).lstrip(".")
            if other in out and name in out and is_array(out[name]) and is_array(out[other]):
                out[(stem + weight).lstrip(".")] = _multiplied(_plain_array(out.pop(name)), _plain_array(out.pop(other)))
    return out


def _multiplied(gain: Any, direction: Any) -> Any:
    import numpy as np

    g, v = (np.asarray(one.float() if hasattr(one, "float") and not isinstance(one, np.ndarray) else one, dtype=np.float64) for one in (gain, direction))
    axes = tuple(axis for axis in range(v.ndim) if g.ndim != v.ndim or g.shape[axis] == 1)
    norm = np.sqrt((v * v).sum(axis=axes, keepdims=True))
    weight = v * (g / norm)
    if hasattr(direction, "new_tensor"):  # PyTorch's, of bfloat16 too
        return direction.new_tensor(weight)
    return weight.astype(direction.dtype)


class _Numbered(Module):
    """Modules named 0, 1, …"""

    def __iter__(self) -> Iterator[Module]:
        return (module for _, module in self._children())

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __getitem__(self, index: int) -> Module:
        return list(self)[index]


class Sequential(_Numbered):
    """Modules one after the other, named 0, 1, …"""

    def __init__(self, *modules: Module):
        for i, module in enumerate(modules):
            if not isinstance(module, Module):
                raise ArgumentError(f"module {i} is a {type(module).__name__}.", hint="Give modules of polyphase.nn.")
            setattr(self, str(i), module)

    def forward(self, x: Any) -> Any:
        """The last module's result."""
        for module in self:
            x = module(x)
        return x


class ModuleList(_Numbered):
    """Modules in a list, named 0, 1, …; the module around it calls them."""

    def __init__(self, modules: Sequence[Module] = ()):
        for module in modules:
            self.append(module)

    def append(self, module: Module) -> None:
        """Adds a module at the end."""
        if not isinstance(module, Module):
            raise ArgumentError(f"a {type(module).__name__} is no module.", hint="Give modules of polyphase.nn.")
        setattr(self, str(len(self)), module)
