// A graph written as text, lowered for the test rows, and a session that runs it.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "kernel/catalogue.h"
#include "runtime/session.h"

namespace polyphase {

const Registry& registry();  // the built-in operators
const Catalogue& kernels();  // test_rows.h and the reference loops

struct Network {
  std::unique_ptr<Graph> graph;
  std::unique_ptr<Session> session;
};

// Expects that the graph is sound and reads back as it prints, too.
Network make(std::string_view text, Session::Options options = {}, bool portable = false);

RunRequest request_of(const std::vector<Tensor>& inputs);

}  // namespace polyphase
