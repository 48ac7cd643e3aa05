"""A dry run of the backend: the same graphs and islands, asked about instead of compiled."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.utils._python_dispatch import _disable_current_modes

from .. import _native
from .._errors import Error, from_native
from .._explanation import Explanation
from .._options import plain_options
from ._backend import Captured
from ._partition import is_getitem, is_size, operator_name
from ._plan import Plan
from ._program import Program, archive
from ._settings import Settings


def explain(network: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], options: Mapping[str, Any] | None) -> Explanation:
    settings = Settings.of({**(options or {}), "require_full": False}, {})
    graphs: list[dict[str, Any]] = []

    def backend(graph: GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        answer: dict[str, Any] = {"operators": [], "eager": None, "break": _break_of(graph), "slow": []}
        function = _Explained(graph, settings, answer).compile(example_inputs)
        graphs.append(answer)  # only now: Dynamo may ask again with another graph instead
        return function

    _run_apart(network, backend, args, kwargs)
    rows = [row for graph in graphs for row in graph["operators"]]
    taken = sum(row["where"] == "polyphase" for row in rows)
    islands = sum(len({row["island"] for row in graph["operators"]} - {None}) for graph in graphs)
    return Explanation(operators=len(rows), taken=taken, islands=islands, whole=len(graphs) == 1 and taken == len(rows), graphs=graphs)


def _run_apart(network: Callable[..., Any], backend: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Compiles and calls it such that Dynamo counts the compilation for nothing else: it compiles a function only so many times (recompile_limit)
    and runs it as it is from then on. Where torch.compile cannot keep them apart (before PyTorch 2.15), what was compiled is forgotten, as
    torch._dynamo.explain does."""
    apart = "isolate_recompiles" in inspect.signature(torch.compile).parameters
    compiled = torch.compile(network, backend=backend, **({"isolate_recompiles": True} if apart else {}))  # type: ignore[call-overload]
    try:
        if not apart:
            torch._dynamo.reset()
        with torch.no_grad():
            compiled(*args, **kwargs)
    finally:
        if not apart:
            torch._dynamo.reset()


class _Explained(Captured):
    """Asks when the graph runs, because then its weights are there; PyTorch runs it."""

    def __init__(self, graph: GraphModule, settings: Settings, answer: dict[str, Any]) -> None:
        super().__init__(graph, settings)
        self.answer = answer

    def make(self, plan: Plan) -> Callable[..., Any]:
        asked = False

        def run(arguments: list[Any]) -> Any:
            nonlocal asked
            if not asked:
                asked = True
                with _disable_current_modes():
                    self._ask(plan, arguments)
            return plan.module.forward(*arguments)

        run._boxed_call = True  # type: ignore[attr-defined]
        return run

    def run_in_pytorch(self, graph: GraphModule, why: str, advice: str) -> None:
        self.answer["eager"] = {"reason": f"{why[0].upper()}{why[1:]}.", "advice": advice}
        for node in _operators(graph):
            self.answer["operators"].append(_row(node, None, f"{why}.", advice))

    def _ask(self, plan: Plan, arguments: Sequence[Any]) -> None:
        slow: dict[str, list[Any]] = {}

        def check(program: Program) -> None:
            options = plain_options(target="native", shapes=None, dims=None, tune_for=program.tune_for, without=(), plugins=plan.settings.plugins.paths)
            text = program.json()
            report = _native.check_bytes(archive(text, plan.weights_of(program, arguments)), options)
            if not report["ok"]:
                raise _first_error(report)
            slow[text] = report["slow"]

        built = plan.build(check)
        self.answer["slow"] = [step for _, program, _ in built for step in slow[program.json()]]
        islands = {node: number for number, (island, _, _) in enumerate(built) for node in island.nodes}
        for node in _operators(plan.module):
            reason, advice = plan.refused.get(node, ("", ""))
            if node in plan.partition.shared:
                reason = "it is a view that leaves the engine beside what it is a view of."
            elif node not in islands and not reason:
                reason = "it follows from weights and sizes alone, and only PyTorch reads it."
            self.answer["operators"].append(_row(node, islands.get(node), reason, advice))


def _operators(graph: GraphModule) -> list[Node]:
    return [node for node in graph.graph.nodes if node.op == "call_function" and not is_getitem(node) and not is_size(node)]


def _row(node: Node, island: int | None, reason: str, advice: str) -> dict[str, Any]:
    return {"node": node.name, "operator": operator_name(node), "where": "pytorch" if island is None else "polyphase", "island": island,
            "reason": "" if island is not None else reason, "advice": "" if island is not None else advice, "line": _line_of(node)}


def _line_of(node: Node) -> str:
    """'net.py:12', the innermost line outside of PyTorch."""
    places = re.findall(r'File "([^"]+)", line (\d+)', node.meta.get("stack_trace") or "")
    users = [place for place in places if "/torch/" not in place[0]] or places
    return f"{users[-1][0]}:{users[-1][1]}" if users else ""


def _first_error(report: Mapping[str, Any]) -> Error:
    problems = [problem["error"] for operator in report["operators"] for problem in operator["problems"]]
    found = [*problems, *report["errors"]]
    if found:
        return from_native(found[0]["code"], found[0]["message"], found[0]["hint"], found[0]["node"], found[0]["trail"])
    missing = next(operator for operator in report["operators"] if operator["nodes_refused"])
    return from_native("unsupported", f"Polyphase has no converter for {missing['domain']}.{missing['name']}.", missing["advice"], missing["first_node"], [])


def _break_of(graph: GraphModule) -> dict[str, str] | None:
    found = getattr(graph, "compile_subgraph_reason", None)
    if found is None or not getattr(found, "graph_break", False):
        return None
    stack = list(getattr(found, "user_stack", ()))
    words = re.split(r"\n\s*(?:Explanation|Hint|Developer debug context)", str(found.reason))[0]
    return {"reason": " ".join(words.split()), "line": f"{stack[-1].filename}:{stack[-1].lineno}" if stack else ""}
