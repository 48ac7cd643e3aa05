"""Networks written layer by layer: Network, Tensor, Size, precision."""

from __future__ import annotations

import contextlib
import contextvars
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from . import _native
from ._errors import ArgumentError
from ._network_layers import layer_methods
from ._network_sizes import Size, SizeLike, numbers, size_from, size_texts
from ._network_weights import Weights
from ._options import Path, Range, Shape, plain_options, plugin_paths

_current: contextvars.ContextVar["Network | None"] = contextvars.ContextVar("polyphase.Network", default=None)
_PADDING_MODES = ("explicit", "valid", "same_upper", "same_lower")


def checked_name(name: Any) -> str:
    """Of a layer, a tensor or an output."""
    if not isinstance(name, str):
        raise ArgumentError(f"a name is a {type(name).__name__}.", hint="Give a str.")
    return name


def dtype_name(dtype: Any) -> str:
    """'float32' for "float32", numpy.float32, numpy.dtype("float32") or torch.float32."""
    if isinstance(dtype, str):
        return dtype
    name = getattr(dtype, "__name__", None) or getattr(dtype, "name", None) or str(dtype).removeprefix("torch.")
    return {"bool_": "bool", "float": "float64", "int": "int64"}.get(name, name)


class Tensor:
    """A tensor of a Network: an input, a constant or a layer's result.

    Operators add layers: + - * / % ** @, comparisons (== compares elements), & | ^ ~, [] with integers and slices.
    """

    __module__ = "polyphase"  # where users find it

    __slots__ = ("_native", "network")
    __array_ufunc__ = None  # so that array + tensor asks the tensor

    def __init__(self, network: Network, native: _native.NetworkTensor):
        self.network = network
        self._native = native

    @property
    def name(self) -> str:
        """The tensor's name: its layer's, unless set_name gave it another."""
        return self._native.name

    @property
    def dtype(self) -> str:
        """The dtype by NumPy's name: 'float32', 'bfloat16', 'bool'."""
        return self._native.dtype

    @property
    def shape(self) -> tuple[int | Size, ...]:
        """The sizes: integers where they are known, else Size."""
        return tuple(size_from(text) for text in self._native.sizes)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._native.sizes)

    @property
    def rank(self) -> int:
        """The number of axes."""
        return self.ndim

    def size(self, dim: int | None = None) -> Any:
        """The size of one axis, or the shape."""
        if dim is None:
            return self.shape
        axis = numbers(dim, "dim")[0]
        if not -self.ndim <= axis < self.ndim:
            raise ArgumentError(f"tensor '{self.name}' has no axis {axis}; its rank is {self.ndim}.", hint="Axes count from 0, or from the end: -1 is the last.")
        return self.shape[axis]

    def set_name(self, name: str) -> Tensor:
        """Gives the tensor another name, and returns it."""
        self.network.set_name(self, name)
        return self

    def __repr__(self) -> str:
        return f"Tensor({self.name!r}, {self.dtype}, {list(self.shape)})"

    def __bool__(self) -> bool:
        raise ArgumentError(f"tensor '{self.name}' has no value while the network is written.", hint="Choose with add_if or where.")

    def __len__(self) -> int:
        if self.ndim == 0 or not isinstance(self.shape[0], int):
            raise ArgumentError(f"tensor '{self.name}' has no length that is known while the network is written.", hint="Use size(0).")
        return self.shape[0]

    __iter__ = None  # its elements are no tensors until they are asked for
    __hash__ = object.__hash__

    def view(self, *shape: Any, zero_is_placeholder: bool = True) -> Tensor:
        """The same elements under another shape, as nn.functional.view: one size may be -1, and 0 copies the size of the axis there."""
        from .nn import functional

        made: Tensor = functional.view(self, shape[0] if len(shape) == 1 and not isinstance(shape[0], (int, str, Size)) else shape, zero_is_placeholder)
        return made

    def mean(self, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor:
        """The mean over axes, from the end if negative; None: over all."""
        from .nn import functional

        made: Tensor = functional.mean(self, list(range(self.ndim)) if dim is None else dim, keepdim)
        return made

    def sqrt(self) -> Tensor:
        """The square roots."""
        return self.network.sqrt(self)

    def __getitem__(self, index: Any) -> Tensor:
        return self.network._piece(self, index if isinstance(index, tuple) else (index,))


def _operator(layer: str, reflected: bool = False) -> Callable[[Tensor, Any], Tensor]:
    def apply(self: Tensor, other: Any) -> Tensor:
        operands = (other, self) if reflected else (self, other)
        return getattr(self.network, layer)(*operands)

    return apply


for _name, _layer in {"add": "add", "sub": "sub", "mul": "mul", "mod": "mod", "pow": "pow", "matmul": "matmul"}.items():
    setattr(Tensor, f"__{_name}__", _operator(_layer))
    setattr(Tensor, f"__r{_name}__", _operator(_layer, reflected=True))
for _name, _layer in {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal"}.items():
    setattr(Tensor, f"__{_name}__", _operator(_layer))
Tensor.__truediv__ = lambda self, other: self.network.divide(self, other)
Tensor.__rtruediv__ = lambda self, other: self.network.divide(other, self)
Tensor.__ne__ = lambda self, other: self.network.not_(self.network.equal(self, other))
Tensor.__neg__ = lambda self: self.network.neg(self)
Tensor.__abs__ = lambda self: self.network.abs(self)
Tensor.__invert__ = lambda self: self.network._logic("not_", "bitwise_not", self)
for _sign, _words in {"and": ("and_", "bitwise_and"), "or": ("or_", "bitwise_or"), "xor": ("xor_", "bitwise_xor")}.items():
    setattr(Tensor, f"__{_sign}__", lambda self, other, words=_words: self.network._logic(*words, self, other))
    setattr(Tensor, f"__r{_sign}__", lambda self, other, words=_words: self.network._logic(*words, other, self))


@layer_methods
class Network:
    """A network that is written layer by layer, then compiled.

        with polyphase.Network() as net:
            x = net.add_input("x", "float32", (1, 64, "H", "W"))
            y = net.relu(net.add_deconvolution_nd(x, weight, bias, stride=2, pre_padding=1, output_padding=1, name="up"))
            net.mark_output(y, "y")
        engine = net.compile()

    name: of the engine's model.
    strongly_typed: operands of different dtypes are refused, with both named; else they are promoted as in PyTorch.
    weights: tensors by name for `weight`: a dict such as module.state_dict(), a module, or the path of an .npz or safetensors file.
    limits: 'tensorrt' refuses at the call what that engine would, with the rule and what to write instead (docs/guides/network.md lists them).
    plugins: paths of shared libraries whose operators `add_plugin` knows (docs/guides/plugins.md).

    A method for every operator of docs/operators.md adds a layer of it: operands by position or name, settings by name. An operand is
    a Tensor, a number, None where it is optional, or an array, which becomes a constant. What is wrong raises at the call, with
    the layer's name. One thread at a time writes a network.
    """

    __module__ = "polyphase"  # where users find it

    def __init__(self, name: str = "network", *, strongly_typed: bool = False, limits: str | None = None, weights: Any = None,
                 plugins: Sequence[Path] = ()):
        known = sorted({limit["target"] for limit in _native.limits()})
        if limits is not None and limits not in known:
            raise ArgumentError(f"limits is {limits!r:.60}.", hint=f"Limits are known of: {', '.join(known)}.")
        self._native = _native.Network(name, bool(strongly_typed), limits or "", plugin_paths(plugins))
        self._weights = Weights(weights)
        self._tokens: list[contextvars.Token[Network | None]] = []

    def __enter__(self) -> Network:
        self._tokens.append(_current.set(self))
        return self

    def __exit__(self, *_: object) -> None:
        _current.reset(self._tokens.pop())

    @staticmethod
    def current() -> Network | None:
        """The network of the innermost `with`, or None."""
        return _current.get()

    def set_range(self, size: str, low: int, high: int) -> None:
        """The values that a symbolic size may take, both ends included; before an input has it."""
        self._native.set_range(size, low, high)

    def add_input(self, name: str, dtype: Any, shape: Sequence[SizeLike]) -> Tensor:
        """An input. A name in the shape is a size known only when the engine runs: (1, 3, 'H', '2*W')."""
        if isinstance(shape, str) or not isinstance(shape, Iterable):
            raise ArgumentError(f"the shape of input '{name}' is a {type(shape).__name__}.", hint="Give a list of sizes: (1, 3, 'H', 'W').")
        return Tensor(self, self._native.add_input(checked_name(name), dtype_name(dtype), size_texts(list(shape), f"the shape of input '{name}'")))

    def add_constant(self, array: Any, name: str = "") -> Tensor:
        """A constant. The array is not copied where it is row-major: do not change it before the network is compiled."""
        return Tensor(self, self._native.add_constant(_plain_array(array), checked_name(name)))

    def weight(self, name: str) -> Tensor:
        """The tensor of this name among Network(weights=...), as a constant of this name; the same Tensor each time."""
        return self._weights.constant(self, name)

    def add_convolution_nd(self, x: Any, weight: Any, bias: Any = None, *, kernel: Any = None, stride: Any = 1, dilation: Any = 1, groups: int = 1,
                           pre_padding: Any = 0, post_padding: Any = None, padding_mode: str = "explicit", data_layout: str | None = None,
                           kernel_layout: str | None = None, out_layout: str | None = None, name: str = "") -> Tensor:
        """A convolution over one to three spatial axes, with or without a batch axis.

        x: (N, C, spatial...) or (C, spatial...). weight: (Cout, C/groups, kernel...). bias: (Cout).
        stride, dilation: one integer, or one for each spatial axis. kernel: what the weight must have; None: whatever it has.
        pre_padding, post_padding: zeros before and after, sizes; negative ones crop; post_padding None: as pre_padding.
        padding_mode: 'explicit', 'valid' (none), 'same_upper' or 'same_lower' (ceil(size / stride) windows).
        data_layout, out_layout: how operand and result lie, by the letters of their axes: 'NCHW', 'NHWC', any other order, or channels in
        blocks as in 'NCHW16c', (N, ceil(C/16), H, W, 16), whose last block zeros fill; sound has N, C, W and volumes N, C, D, H, W.
        None: channels-first, and out_layout as data_layout. kernel_layout: 'OIHW', 'HWIO', any order of the letters. Nothing is
        transposed inside the network that need not be.
        """
        settings = _window_settings(kernel, stride, dilation, groups, pre_padding, post_padding, padding_mode)
        settings |= _layouts(data_layout, kernel_layout, out_layout)
        return Tensor(self, self._native.add_convolution(self._operands((x, weight, bias), name), settings, name))

    def add_deconvolution_nd(self, x: Any, weight: Any, bias: Any = None, *, kernel: Any = None, stride: Any = 1, dilation: Any = 1, groups: int = 1,
                             pre_padding: Any = 0, post_padding: Any = None, output_padding: Any = None, output_size: Any = None,
                             padding_mode: str = "explicit", data_layout: str | None = None, kernel_layout: str | None = None,
                             out_layout: str | None = None, name: str = "") -> Tensor:
        """A transposed convolution over one to three spatial axes, with or without a batch axis.

        weight: (C, Cout/groups, kernel...). The result has
        (size - 1) * stride + (kernel - 1) * dilation + 1 - pre_padding - post_padding + output_padding places along each axis.
        pre_padding, post_padding: places cut off at the beginning and at the end; negative ones add.
        output_padding: places added at the end, below the stride or the dilation.
        output_size: instead of it, the result's spatial sizes or its whole shape; `skip.shape` makes it as large as that tensor.
        padding_mode: 'same_upper' and 'same_lower' give size * stride places. The rest is as for add_convolution_nd; the weight's own
        order is 'IOHW', and a whole shape in output_size is in the order of out_layout.
        """
        settings = _window_settings(kernel, stride, dilation, groups, pre_padding, post_padding, padding_mode)
        settings |= _layouts(data_layout, kernel_layout, out_layout)
        settings["output_padding"] = size_texts(output_padding, "output_padding")
        settings["output_size"] = size_texts(output_size, "output_size")
        return Tensor(self, self._native.add_deconvolution(self._operands((x, weight, bias), name), settings, name))

    def add_layer(self, op: str, operands: Sequence[Any], attributes: Mapping[str, Any] | None = None, name: str = "") -> list[Tensor]:
        """A layer of any operator of docs/operators.md, by name; its results."""
        settings = {key: _plain_attribute(key, value) for key, value in dict(attributes or {}).items()}
        return self._tensors(self._native.add_layer(op, self._operands(operands, name), settings, name))

    def add_plugin(self, op: str, operands: Sequence[Any], attributes: Mapping[str, Any] | None = None, name: str = "") -> list[Tensor]:
        """An operator of one of the network's plugins by its name, 'stylegan.upfirdn2d'; its results."""
        settings = {key: _plain_attribute(key, value) for key, value in dict(attributes or {}).items()}
        return self._tensors(self._native.add_plugin(op, self._operands(operands, name), settings, name))

    def add_if(self, condition: Any, then_branch: Callable[[], Any], else_branch: Callable[[], Any], name: str = "") -> Any:
        """Runs one of two branches. Each function writes its layers and returns a tensor or a list of them, which must agree in number, dtypes
        and ranks; tensors of outside may be used in it. Returns what the branches return."""
        single = []

        def run(branch: Callable[[], Any]) -> list[Any]:
            results = branch()
            single.append(not isinstance(results, (list, tuple)))
            return self._operands(results if isinstance(results, (list, tuple)) else [results], name)

        made = self._tensors(self._native.add_if(self._operand(condition, name), lambda: run(then_branch), lambda: run(else_branch), name))
        return made[0] if all(single) and len(made) == 1 else made

    def add_loop(self, body: Callable[..., Any], carried: Sequence[Any], *, trip_count: Any = None, condition: Any = None, name: str = "") -> list[Tensor]:
        """Runs body(iteration, *carried) trip_count times (None: no limit) while the condition holds.

        The body returns (again, carried, rows): whether to go on (None: yes), the tensors of the next trip, and rows to stack over the trips.
        Returns the carried tensors after the last trip, then the stacked rows. The body is called again where a carried tensor turns out
        to change its sizes.
        """
        def run(iteration: _native.NetworkTensor, inside: list[_native.NetworkTensor]) -> tuple[Any, list[Any], list[Any]]:
            turn = body(Tensor(self, iteration), *self._tensors(inside))
            if not isinstance(turn, tuple) or len(turn) != 3:
                raise ArgumentError(f"the body of a loop returned a {type(turn).__name__}.", hint="Return (again, carried, rows); again may be None.")
            again, after, rows = turn
            return self._operand(again, name), self._operands(after, name), self._operands(rows, name)

        ends = self._operands((trip_count, condition), name)
        return self._tensors(self._native.add_loop(*ends, self._operands(carried, name), run, name))

    def set_name(self, tensor: Tensor, name: str) -> None:
        """Gives a tensor another name; names of tensors are unique."""
        self._native.set_name(_own(tensor, "the tensor"), checked_name(name))

    def mark_output(self, tensor: Tensor, name: str = "") -> None:
        """Makes the tensor an output of the engine; without a name it has the tensor's."""
        self._native.mark_output(_own(tensor, "the output"), checked_name(name))

    @contextlib.contextmanager
    def precision(self, dtype: Any) -> Iterator[None]:
        """Layers that are added inside compute their floats in this dtype, by casts named LAYER/cast_OPERAND. Scopes nest."""
        self._native.push_precision(dtype_name(dtype))
        try:
            yield
        finally:
            self._native.pop_precision()

    def view(self, x: Tensor, shape: Sequence[Any], name: str = "") -> Tensor:
        """The same elements under another shape; one size may be -1, which the others tell."""
        sizes = list(shape)
        if sum(1 for size in sizes if size == -1) > 1:
            raise ArgumentError(f"the shape {sizes!r:.60} leaves more than one size open.", hint="Give -1 once.")
        if -1 in sizes:
            known = [size for size in sizes if not (isinstance(size, int) and size == -1)]
            if any(isinstance(size, int) and size == 0 for size in known):
                raise ArgumentError(f"the shape {sizes!r:.60} has a size of 0, so it says nothing of the one left open.", hint="Give every size.")
            sizes[sizes.index(-1)] = _remaining(x.shape, known)
        return self.reshape(x, shape=sizes, name=name)

    def divide(self, x: Any, y: Any, name: str = "") -> Tensor:
        """x / y as in PyTorch: integers become float32. The operator `div` truncates integers."""
        if _is_integer(x) and _is_integer(y):
            y = float(y) if isinstance(y, int) else self.cast(y, to="float32")
        return self.div(x, y, name=name)

    def text(self) -> str:
        """The network in the text form of docs/operators.md; large constants are left out."""
        return self._native.text()

    def compile(self, *, target: str = "native", shapes: Mapping[str, Shape] | None = None, dims: Mapping[str, Range] | None = None,
                tune_for: Mapping[str, Sequence[int]] | None = None, without: Sequence[str] = (), refittable: bool = False, tune: bool = False,
                tune_threads: int = 0, timing_cache: Path | None = None, engine_file: Path | None = None,
                progress: Callable[[str, float], object] | None = None, precision: str = "model",
                input_layouts: Mapping[str, str] | None = None, output_layouts: Mapping[str, str] | None = None) -> _native.Engine:
        """Compiles what has been written so far; the network stays and may grow. The options are those of polyphase.compile.

        refittable: the weights that Engine.refit takes are the constants, by their names.

        Raises Error: invalid_argument, invalid_model, unsupported, io, out_of_memory, cancelled.
        """
        if progress is not None and not callable(progress):
            raise ArgumentError(f"progress is a {type(progress).__name__}.", hint="Give a function of (stage, done), or None.")
        options = plain_options(target=target, shapes=shapes, dims=dims, tune_for=tune_for, without=without, refittable=refittable, tune=tune,
                                tune_threads=tune_threads, timing_cache=timing_cache, engine_file=engine_file, precision=precision,
                                input_layouts=input_layouts, output_layouts=output_layouts)
        return self._native.compile(options, progress)

    # ------------------------------------------------------------ what the methods share

    def _tensors(self, natives: list[_native.NetworkTensor]) -> list[Tensor]:
        return [Tensor(self, native) for native in natives]

    def _operand(self, given: Any, layer: str) -> Any:
        """What the extension takes: arrays become constants."""
        if isinstance(given, Tensor):
            return given._native
        if given is None or isinstance(given, (bool, int, float)):
            return given
        if isinstance(given, Size):
            return self.dims(values=[given], scalar=True)._native
        if not (hasattr(given, "__array_interface__") or hasattr(given, "__dlpack__")):
            where = f"of layer '{layer}'" if layer else "of a layer"
            raise ArgumentError(f"an operand {where} is a {type(given).__name__}.", hint="Give a tensor, a number or an array.")
        return self._native.add_constant(_plain_array(given), "")

    def _operands(self, given: Sequence[Any], layer: str) -> list[Any]:
        checked_name(layer)
        return [self._operand(one, layer) for one in given]

    def _logic(self, of_bools: str, of_integers: str, *operands: Any) -> Tensor:
        is_bool = any(isinstance(one, Tensor) and one.dtype == "bool" for one in operands)
        return getattr(self, of_bools if is_bool else of_integers)(*operands)

    def _piece(self, x: Tensor, index: tuple[Any, ...]) -> Tensor:
        """x[index]: integers, slices, None and one ellipsis."""
        from ._network_index import piece

        return piece(self, x, index)


def _is_integer(given: Any) -> bool:
    if isinstance(given, Tensor):
        return not given.dtype.startswith(("float", "bfloat"))
    return isinstance(given, int)


def _own(tensor: Any, what: str) -> _native.NetworkTensor:
    if not isinstance(tensor, Tensor):
        raise ArgumentError(f"{what} is a {type(tensor).__name__}.", hint="Give a Tensor that the network gave.")
    return tensor._native


def _plain_array(array: Any) -> Any:
    """A parameter without its gradient; lists and numbers as NumPy has them."""
    if getattr(array, "requires_grad", False):
        return array.detach()
    if isinstance(array, (bool, int, float, list, tuple)):
        import numpy as np

        made = np.asarray(array)
        return made.astype(np.float32) if made.dtype == np.float64 else made
    return array


def _plain_attribute(name: str, value: Any) -> Any:
    """What the extension reads of a setting: numbers, texts, lists of them."""
    if isinstance(value, (bool, float, str)):
        return value
    if isinstance(value, Size):
        return str(value)
    if isinstance(value, (list, tuple)):
        return [_plain_attribute(name, one) for one in value]
    if hasattr(value, "__index__"):
        return operator.index(value)
    if hasattr(value, "__float__") and not isinstance(value, type):
        return float(value)
    if isinstance(value, type) or hasattr(value, "itemsize"):
        return dtype_name(value)
    raise ArgumentError(f"attribute '{name}' is a {type(value).__name__}.", hint="docs/operators.md says what operators take.")


def _layouts(data: str | None, kernel: str | None, out: str | None) -> dict[str, str]:
    given = {"data_layout": data, "kernel_layout": kernel, "out_layout": out}
    for name, layout in given.items():
        if layout is not None and (not isinstance(layout, str) or not layout):
            raise ArgumentError(f"{name} is {layout!r:.40}.", hint="Give the letters of the axes, outermost first, as in 'NHWC'; or None.")
    return {name: layout or "" for name, layout in given.items()}


def _window_settings(kernel: Any, stride: Any, dilation: Any, groups: Any, pre_padding: Any, post_padding: Any, padding_mode: Any) -> dict[str, Any]:
    if padding_mode not in _PADDING_MODES:
        raise ArgumentError(f"padding_mode is {padding_mode!r:.60}.", hint="It is 'explicit', 'valid', 'same_upper' or 'same_lower'.")
    return {"kernel": numbers(kernel, "kernel"), "stride": numbers(stride, "stride"), "dilation": numbers(dilation, "dilation"),
            "groups": numbers(groups, "groups")[0], "pre_padding": size_texts(pre_padding, "pre_padding"),
            "post_padding": size_texts(post_padding, "post_padding"), "padding_mode": _PADDING_MODES.index(padding_mode)}


def _remaining(shape: Sequence[int | Size], known: Sequence[Any]) -> Any:
    """product(shape) // product(known), where factors that both have are crossed out."""
    left = list(shape)
    right = []
    for size in known:
        if size in left:
            left.remove(size)
        else:
            right.append(size)
    product: Any = 1
    for size in left:
        product = size if isinstance(product, int) and product == 1 else product * size
    for size in right:
        product = product // size
    return product


@contextlib.contextmanager
def precision(dtype: Any) -> Iterator[None]:
    """Network.precision of the network of the innermost `with`.

        with polyphase.Network() as net, polyphase.precision("bfloat16"):
            y = net.matmul(x, w)
    """
    network = Network.current()
    if network is None:
        raise ArgumentError("a precision scope is opened outside of a network.", hint="Open it inside of `with Network() as net:`.")
    with network.precision(dtype):
        yield
