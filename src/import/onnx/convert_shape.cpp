// Shape and Size: an operand's sizes as data.
#include <algorithm>

#include "import/onnx/node_context.h"

namespace polyphase {
namespace {

Result<Values> convert_shape(NodeContext& node) {
  const std::int64_t rank = node.rank(0);
  const auto clamp = [rank](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const std::int64_t start = clamp(std::max<std::int64_t>(node.integer("start", 0), -rank));
  const std::int64_t end = clamp(std::max<std::int64_t>(node.integer("end", rank), -rank));
  const std::vector<Dim>& sizes = node.shape(0).dims();
  std::vector<Dim> asked;
  if (start < end) asked.assign(sizes.begin() + start, sizes.begin() + end);
  return Values{node.sizes_as_data(std::move(asked))};
}

Result<Values> convert_size(NodeContext& node) {
  return Values{node.sizes_as_data({node.shape(0).element_count()}, true)};
}

}  // namespace

std::vector<Converter> shape_converters() {
  return {
      {"Shape", {1, 13, 15, 19, 21, 23, 24, 25}, 1, 1, convert_shape},
      {"Size", {1, 13, 19, 21, 23, 24, 25}, 1, 1, convert_size},
  };
}

}  // namespace polyphase
