// Random bytes as an ONNX model: refused with an Error, or a graph that the verifier accepts.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>

#include "graph/graph.h"
#include "import/onnx/import_onnx.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace polyphase;
  static const Registry registry = Registry::built_in();
  const ImportOptions options{.max_nodes = 2000};
  const auto model = import_onnx(std::span(reinterpret_cast<const std::byte*>(bytes), size), registry, options);
  if (!model.ok()) return 0;
  const auto verified = verify(*model->graph);
  if (verified.ok()) return 0;
  std::fprintf(stderr, "onnx_model_fuzz: a graph was made that the verifier refuses: %s\n",
               verified.error().text().c_str());
  std::abort();
}
