// What `if` and `loop` say about the graphs that they own: which sizes of their results only a run tells.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/dim.h"
#include "base/result.h"
#include "graph/graph.h"

namespace polyphase {

using Symbols = std::set<std::string, std::less<>>;
bool mentions(const Dim& dim, const Symbols& symbols);

// A size under a name that nobody has yet.
using FreshSize = std::function<Dim()>;

// The attributes of an `if` node. Errors: the branches differ in dtype (invalid_model) or rank (unsupported).
Result<Attributes> attributes_of_branches(const Graph& then_graph, const Graph& else_graph, const FreshSize& fresh);

// Where the body changes a size of a carried value, the value enters each trip with a size that has its own name.
// True: some size got one, and the body must be made again.
Result<bool> free_changing_sizes(const Graph& body, std::vector<Type>& types, std::vector<Dim>& entering,
                                 const FreshSize& fresh);
// The attributes of a `loop` node whose body keeps these types. `counted`: the number of trips is a known size.
Attributes attributes_of_loop(const Graph& body, const std::vector<Type>& types, const std::vector<Dim>& entering,
                              bool counted, const FreshSize& fresh);

}  // namespace polyphase
