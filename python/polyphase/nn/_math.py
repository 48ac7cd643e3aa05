"""Functions that compute: products, reductions, activations, elementwise arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._errors import ArgumentError
from .._network import Network, Tensor
from ._function import axes_of, axis_of, function, tensor


@function
def softmax(net: Network, input: Any, dim: int | None = None) -> Any:
    """exp(x) / Σ exp(x) along an axis, the last one if dim is None."""
    x = tensor(net, input, "input")
    return net.softmax(x, axis=axis_of(x, -1 if dim is None else dim))


def _reduced(op: str) -> Callable[..., Tensor]:
    def reduce(net: Network, input: Any, dim: int | Sequence[int], keepdim: bool) -> Tensor:
        x = tensor(net, input, "input")
        made: Tensor = getattr(net, op)(x, axes=axes_of(x, dim), keep=bool(keepdim))
        return made

    return reduce


_mean, _max = _reduced("reduce_mean"), _reduced("reduce_max")


@function
def mean(net: Network, input: Any, dim: int | Sequence[int], keepdim: bool = False) -> Any:
    """The mean over axes."""
    return _mean(net, input, dim, keepdim)


@function
def max(net: Network, input: Any, dim: int | Sequence[int], keepdim: bool = False) -> Any:
    """The greatest element over axes."""
    return _max(net, input, dim, keepdim)


@function
def argmax(net: Network, input: Any, dim: int, keepdim: bool = False) -> Any:
    """The place of the greatest element along an axis, the first of equals, as int64."""
    x = tensor(net, input, "input")
    return net.arg_max(x, axis=axis_of(x, dim), keep=bool(keepdim))


def _turned(net: Network, x: Tensor) -> Tensor:
    if x.ndim < 2:
        raise ArgumentError(f"tensor '{x.name}' of rank {x.ndim} is to be transposed.", hint="Give a matrix.")
    return net.transpose(x, order=[*range(x.ndim - 2), x.ndim - 1, x.ndim - 2])


@function
def matmul(net: Network, input: Any, mat2: Any, transa: bool = False, transb: bool = False) -> Any:
    """The product of matrices, or of stacks of them, each transposed first if asked for."""
    a, b = tensor(net, input, "input"), tensor(net, mat2, "mat2")
    return net.matmul(_turned(net, a) if transa else a, _turned(net, b) if transb else b)


@function
def linear(net: Network, input: Any, weight: Any, bias: Any = None) -> Any:
    """input · weightᵀ + bias, the weight (out, in), the bias (out)."""
    x, w = tensor(net, input, "input"), tensor(net, weight, "weight")
    if w.ndim != 2:
        raise ArgumentError(f"the weight has the sizes {list(w.shape)}.", hint="Give (out, in).")
    y = net.matmul(x, _turned(net, w))
    return y if bias is None else net.add(y, bias)


@function
def embedding(net: Network, input: Any, weight: Any) -> Any:
    """The rows of weight (count, size) at the integers of input."""
    w = tensor(net, weight, "weight")
    if w.ndim != 2:
        raise ArgumentError("'weight' must be 2-D", hint=f"It has the sizes {list(w.shape)}.")
    return net.gather(w, tensor(net, input, "input"), axis=0)


@function
def einsum(net: Network, einsum_eq: str, inputs: Sequence[Any]) -> Any:
    """Sums of products over named axes: einsum("bij,bjk->bik", [a, b]). No ellipsis, no letter twice in one operand."""
    text = einsum_eq.replace(" ", "")
    left, arrow, right = text.partition("->")
    words = left.split(",")
    xs = [tensor(net, one, "an input") for one in inputs]
    if len(words) != len(xs):
        raise ArgumentError(f"'{einsum_eq}' names {len(words)} operands, {len(xs)} are given.", hint="Give one word for each operand.")
    for word, x in zip(words, xs):
        if not word.isalpha() and word or len(set(word)) != len(word):
            raise ArgumentError(f"'{einsum_eq}' has the word '{word}'.", hint="Words are letters, each once; there is no ellipsis.")
        if len(word) != x.ndim:
            raise ArgumentError(f"'{word}' of '{einsum_eq}' has {len(word)} letters, but its operand has rank {x.ndim}.", hint="Give a letter for each axis.")
    every = "".join(words)
    result = right if arrow else "".join(sorted(letter for letter in set(every) if every.count(letter) == 1))
    if any(letter not in every for letter in result) or len(set(result)) != len(result):
        raise ArgumentError(f"'{einsum_eq}' gives '{result}'.", hint="The result names letters of the operands, each once.")
    word, x = words[0], xs[0]
    for i in range(1, len(xs)):
        kept = set(result).union(*words[i + 1:])
        word, x = _contract(net, word, x, words[i], xs[i], kept)
    gone = [axis for axis, letter in enumerate(word) if letter not in result]
    if gone:
        x = net.reduce_sum(x, axes=gone, keep=False)
        word = "".join(letter for letter in word if letter in result)
    return x if word == result else net.transpose(x, order=[word.index(letter) for letter in result])


def _arranged(net: Network, word: str, x: Tensor, groups: Sequence[str]) -> Tensor:
    """Axes in the order of the groups' letters, each group one axis; letters in no group are summed first."""
    wanted = "".join(groups)
    gone = [axis for axis, letter in enumerate(word) if letter not in wanted]
    if gone:
        x = net.reduce_sum(x, axes=gone, keep=False)
        word = "".join(letter for letter in word if letter in wanted)
    sizes = dict(zip(word, x.shape))
    x = net.transpose(x, order=[word.index(letter) for letter in wanted]) if word != wanted else x
    shape: list[Any] = []
    for group in groups:
        size: Any = 1
        for letter in group:
            size = sizes[letter] if isinstance(size, int) and size == 1 else size * sizes[letter]
        shape.append(size)
    return net.reshape(x, shape=shape)


def _contract(net: Network, a_word: str, a: Tensor, b_word: str, b: Tensor, kept: set[str]) -> tuple[str, Tensor]:
    both = [letter for letter in a_word if letter in b_word]
    batch = "".join(letter for letter in both if letter in kept)
    summed = "".join(letter for letter in both if letter not in kept)
    rows = "".join(letter for letter in a_word if letter not in both and letter in kept)
    columns = "".join(letter for letter in b_word if letter not in both and letter in kept)
    sizes = {**dict(zip(b_word, b.shape)), **dict(zip(a_word, a.shape))}
    product = net.matmul(_arranged(net, a_word, a, [batch, rows, summed]), _arranged(net, b_word, b, [batch, summed, columns]))
    word = batch + rows + columns
    return word, net.reshape(product, shape=[sizes[letter] for letter in word])


@function
def softplus(net: Network, input: Any, beta: float = 1, threshold: float = 20) -> Any:
    """log(1 + exp(beta · x)) / beta, and x itself where beta · x is above the threshold."""
    x = tensor(net, input, "input")
    if beta == 0:
        raise ArgumentError("beta is 0.", hint="Give another number.")
    scaled = x if beta == 1 else net.mul(x, float(beta))
    y = net.softplus(scaled)
    y = y if beta == 1 else net.mul(y, 1.0 / float(beta))
    return net.where(net.greater(scaled, float(threshold)), x, y)


@function
def gelu(net: Network, input: Any, approximate: str = "tanh") -> Any:
    """x · Φ(x) by its tanh approximation, x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))); approximate='none': exactly."""
    return net.gelu(tensor(net, input, "input"), approximate=approximate)


def _unary(op: str, doc: str) -> Callable[..., Any]:
    def write(net: Network, input: Any) -> Any:
        return getattr(net, op)(tensor(net, input, "input"))

    write.__name__ = op
    write.__doc__ = doc
    return function(write)


mish = _unary("mish", "x · tanh(softplus(x)).")
silu = _unary("silu", "x · sigmoid(x).")
relu = _unary("relu", "max(0, x).")
sigmoid = _unary("sigmoid", "1 / (1 + exp(-x)).")
tanh = _unary("tanh", "The hyperbolic tangent.")
round = _unary("round", "To the nearest integer, ties to even.")
sqrt = _unary("sqrt", "The square root.")
exp = _unary("exp", "The exponential.")
log = _unary("log", "The natural logarithm.")
sin = _unary("sin", "The sine.")
cos = _unary("cos", "The cosine.")
abs = _unary("abs", "The magnitude.")


@function
def clip(net: Network, input: Any, alpha: float, beta: float) -> Any:
    """At least alpha, at most beta."""
    return net.clip(tensor(net, input, "input"), low=float(alpha), high=float(beta))


def _binary(name: str, op: str, doc: str) -> Callable[..., Any]:
    def write(net: Network, left: Any, right: Any) -> Any:
        if not isinstance(left, Tensor) and not isinstance(right, Tensor):
            left = tensor(net, left, "left")
        return getattr(net, op)(left, right)

    write.__name__ = name
    write.__doc__ = doc + " The operands broadcast; a number takes the other's dtype."
    return function(write)


add = _binary("add", "add", "left + right.")
sub = _binary("sub", "sub", "left - right.")
mul = _binary("mul", "mul", "left · right.")
div = _binary("div", "divide", "left / right; integers become float32.")
gt = _binary("gt", "greater", "left > right.")
lt = _binary("lt", "less", "left < right.")
eq = _binary("eq", "equal", "left == right.")
op_and = _binary("op_and", "and_", "Both, of bools.")
op_or = _binary("op_or", "or_", "Either, of bools.")
minimum = _binary("minimum", "min", "The lesser.")
maximum = _binary("maximum", "max", "The greater.")
pow = _binary("pow", "pow", "left to the power of right.")
