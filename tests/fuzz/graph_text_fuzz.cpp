// Random bytes as the IR's text: refused with an Error, or a graph that the verifier accepts and that prints as it
// reads.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "graph/graph.h"

namespace polyphase {
namespace {

void require(bool holds, const char* what, const std::string& details) {
  if (holds) return;
  std::fprintf(stderr, "graph_text_fuzz: %s: %s\n", what, details.c_str());
  std::abort();
}

}  // namespace
}  // namespace polyphase

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace polyphase;
  static const Registry registry = Registry::built_in();
  const auto graph = parse_graph({reinterpret_cast<const char*>(bytes), size}, registry);
  if (!graph.ok()) return 0;
  const auto verified = verify(*graph.value());
  require(verified.ok(), "a graph was read that the verifier refuses", verified.ok() ? "" : verified.error().text());
  const std::string text = print(*graph.value());
  const auto again = parse_graph(text, registry);
  require(again.ok(), "what was printed cannot be read", text);
  require(print(*again.value()) == text, "what was read prints otherwise the second time", text);
  return 0;
}
