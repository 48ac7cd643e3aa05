"""Which nodes of a graph go to Polyphase, and in which islands.

A node's level counts the changes from PyTorch back to Polyphase on the longest way to it; all nodes of one level that
Polyphase takes are one island, and no way leads out of an island and back into it:

    conv → relu → sort → conv → add          levels 0 0 | 1 1, `sort` (not taken) runs between islands 0 and 1
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Iterable, Set

import torch
from torch.fx import Graph, Node

# Operators that move no element where PyTorch runs them: they make no island worth its call.
_VIEWS = {"aten.alias", "aten.as_strided", "aten.clone", "aten.detach", "aten.expand", "aten.permute", "aten.reshape", "aten.select",
          "aten.slice", "aten.split", "aten.split_with_sizes", "aten.squeeze", "aten.t", "aten.transpose", "aten.unbind",
          "aten.unsqueeze", "aten.view", "aten.view_as_complex", "aten.view_as_real", "aten._unsafe_view"}
# Of these, those whose result shares the operand's memory in PyTorch.
_SHARING = _VIEWS - {"aten.clone", "aten._unsafe_view"}
_CONVOLUTIONS = {"aten.convolution", "aten.conv_transpose1d", "aten.conv_transpose2d", "aten.conv_transpose3d", "aten.conv1d",
                 "aten.conv2d", "aten.conv3d"}
DEFAULT_BLOCK = 3


def operator_name(node: Node) -> str:
    """'aten.convolution.default'; of what is no overload, its Python name."""
    if isinstance(node.target, torch._ops.OpOverload):
        return str(node.target)
    return getattr(node.target, "__name__", str(node.target))


def _family(node: Node) -> str:
    return operator_name(node).rpartition(".")[0]


def is_getitem(node: Node) -> bool:
    return node.op == "call_function" and node.target is operator.getitem and isinstance(node.args[0], Node) and _is_list(node.args[0])


def _is_list(node: Node) -> bool:
    return isinstance(node.meta.get("val"), (list, tuple))


def _is_complex(node: Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.is_complex()


def is_size(node: Node) -> bool:
    """Arithmetic on sizes: plain Python when the graph runs, formulas inside an island."""
    return isinstance(node.meta.get("val"), (int, float, bool, torch.SymInt, torch.SymFloat, torch.SymBool))


def operands(node: Node) -> list[Node]:
    """The nodes whose tensors it reads."""
    return [given for given in node.all_input_nodes if not is_size(given)]


@dataclasses.dataclass
class Island:
    nodes: list[Node]  # in the graph's order, without the getitem nodes behind them
    level: int

    @property
    def operators(self) -> int:
        return sum(_family(node) not in _VIEWS for node in self.nodes)

    def is_worthwhile(self, min_block_size: int | None, claimed: Set[str]) -> bool:
        if self.operators >= (min_block_size or DEFAULT_BLOCK):
            return True
        return min_block_size is None and any(_family(node) in _CONVOLUTIONS or operator_name(node) in claimed for node in self.nodes)


class Partition:
    """Islands of the nodes that `takes` (with their reason against it where not), and what runs when."""

    def __init__(self, graph: Graph, is_weight: Callable[[Node], bool], refused: dict[Node, tuple[str, str]], claimed: Set[str] = frozenset()) -> None:
        self.graph = graph
        self._claimed = claimed  # by plugins: worth an engine each
        self.refused = refused
        self._is_weight = is_weight
        self._calls = [node for node in graph.nodes if node.op == "call_function" and not is_getitem(node)]
        self._level: dict[Node, int] = {}
        self._floats: set[Node] = set()
        self.shared: set[Node] = set()
        self.free: set[Node] = set()  # of those refused: views among what PyTorch runs
        self.islands: list[Island] = []

    def takes(self, node: Node) -> bool:
        return node not in self.refused and node not in self.shared and not is_size(node)

    def owner(self, node: Node) -> Node:
        """The node that computes it: itself, or what a getitem takes from."""
        while is_getitem(node):
            node = node.args[0]  # type: ignore[assignment]
        return node

    def divide(self, min_block_size: int | None) -> None:
        """Small islands are given back to PyTorch, until all that are left are worthwhile."""
        while True:
            self._find_shared()
            self._find_floats()
            self._find_levels()
            members: dict[int, list[Node]] = {}
            for node in self._calls:
                if self.takes(node) and node not in self._floats:
                    members.setdefault(self._level[node], []).append(node)
            self.islands = [Island(self._with_floats(nodes), level) for level, nodes in sorted(members.items())]
            if crossing := [node for island in self.islands for node in island.nodes if self._lets_complex_pass(node, set(island.nodes))]:
                for node in crossing:
                    self.refused[node] = ("a complex tensor would have to pass between it and PyTorch.",
                                          "Keep complex numbers between operators that Polyphase takes.")
                continue
            small = [piece for nodes in members.values() for piece in self._pieces(nodes) if not Island(piece, 0).is_worthwhile(min_block_size, self._claimed)]
            if not small:
                return
            for piece in small:
                count = Island(piece, 0).operators
                words, advice = "it moves no element, so PyTorch does it for nothing.", "Nothing need be done."
                if count:
                    words = f"it stands in an island of {count} {'operator' if count == 1 else 'operators'}, fewer than {min_block_size or DEFAULT_BLOCK}."
                    advice = f'Give options={{"min_block_size": {count}}} if the call is worth it.'
                for node in piece:
                    self.refused[node] = (words, advice)
                    if not count:
                        self.free.add(node)

    def _lets_complex_pass(self, node: Node, island: set[Node]) -> bool:
        """Complex numbers exist inside of an island only."""
        if any(_is_complex(given) and not self._is_weight(given) and self.owner(given) not in island for given in operands(node)):
            return True
        results = [user for user in node.users if is_getitem(user)] if _is_list(node) else [node]
        return any(_is_complex(result) and any(user not in island and not is_size(user) for user in result.users) for result in results)

    def _find_shared(self) -> None:
        """Views that leave the islands beside what they are views of: PyTorch makes them, so that both share memory."""
        self.shared = set()

        def leaves(node: Node) -> bool:
            results = [user for user in node.users if is_getitem(user)] if _is_list(node) else [node]
            return all(user.op == "output" or not self.takes(user) for result in results for user in result.users if not is_size(user))

        def is_read_outside(node: Node) -> bool:
            return any(user.op == "output" or not self.takes(user) for user in node.users if not is_getitem(user) and not is_size(user))

        for node in reversed(self._calls):
            if self.takes(node) and _family(node) in _SHARING and leaves(node):
                base = node.args[0]
                if isinstance(base, Node) and self.owner(base) in self._calls and len(base.users) > 1 and is_read_outside(base):
                    self.shared.add(node)

    def _find_floats(self) -> None:
        """What depends on weights and sizes alone belongs to no level: each island that reads it computes it, when it is compiled."""
        self._floats = set()
        for node in self._calls:
            if self.takes(node) and all(self._is_weight(given) or self.owner(given) in self._floats for given in operands(node)):
                self._floats.add(node)

    def _find_levels(self) -> None:
        self._level = {}
        for node in self._calls:
            level = 0
            for given in node.all_input_nodes:
                before = self.owner(given)
                if before not in self._level or before in self._floats or (self.takes(node) and is_size(given)):
                    continue
                level = max(level, self._level[before] + (self.takes(node) and not self.takes(before)))
            self._level[node] = level

    def _with_floats(self, nodes: list[Node]) -> list[Node]:
        wanted = set(nodes)
        waiting = list(nodes)
        while waiting:
            for given in operands(waiting.pop()):
                before = self.owner(given)
                if before in self._floats and before not in wanted:
                    wanted.add(before)
                    waiting.append(before)
        return [node for node in self._calls if node in wanted]

    def _pieces(self, nodes: list[Node]) -> list[list[Node]]:
        """Those that hang together by their own results."""
        root = {node: node for node in nodes}

        def find(node: Node) -> Node:
            while root[node] is not node:
                node = root[node]
            return node

        for node in nodes:
            for given in operands(node):
                before = self.owner(given)
                if before in root:
                    root[find(node)] = find(before)
        pieces: dict[Node, list[Node]] = {}
        for node in nodes:
            pieces.setdefault(find(node), []).append(node)
        return list(pieces.values())

    def schedule(self) -> Iterable[Node | Island]:
        """Nodes that PyTorch runs and islands, in an order in which tensors are computed before they are read. What follows from
        weights and sizes alone is left out: whoever reads it there comes for it."""
        inside = {node for island in self.islands for node in island.nodes}
        rest: dict[int, list[Node]] = {}
        for node in self._calls:
            if node not in inside and node not in self._floats and not is_size(node):
                rest.setdefault(self._level[node], []).append(node)
        islands = {island.level: island for island in self.islands}
        for level in sorted(set(islands) | set(rest)):
            if level in islands:
                yield islands[level]
            yield from rest.get(level, [])
