// The crop of a transposed convolution depends on its input's size only through output_shape, which goes down with it.
#include "export/smaller_twin.h"

#include <algorithm>

#include "export/conv_transpose.h"

namespace polyphase::legal {
namespace {

constexpr std::int64_t large_places = 400;  // of the input
constexpr std::int64_t least_size = 4;

}  // namespace

std::optional<SmallerTwin> smaller_twin(const onnx::NodeProto& node, const ModelFacts& model) {
  if (node.op_type() != "ConvTranspose") return std::nullopt;
  const auto facts = read_conv_transpose(node, model);
  if (!facts.ok() || !facts->fixed_crop()) return std::nullopt;
  std::int64_t places = 1;
  for (std::size_t i = 0; i < facts->axes(); ++i) {
    const Dim& size = facts->x.shape[static_cast<int>(i) + 2];
    if (!size.is_constant()) return std::nullopt;
    places *= std::max<std::int64_t>(1, size.value());
  }
  if (places < large_places) return std::nullopt;
  SmallerTwin out{facts->x, node};
  std::vector<std::int64_t> asked = facts->output_shape;
  if (asked.size() > facts->axes()) return std::nullopt;
  for (std::size_t i = 0; i < facts->axes(); ++i) {
    Dim& size = out.x.shape[static_cast<int>(i) + 2];
    const std::int64_t cropped = facts->pre[i].value() + facts->post[i].value() - facts->span(i) + 1;
    const std::int64_t small = std::max(least_size, ceil_div(cropped, facts->stride[i]) + 2);
    if (size.value() <= small) continue;
    if (!asked.empty()) asked[i] -= (size.value() - small) * facts->stride[i];
    size = Dim(small);
  }
  if (!asked.empty()) set_integers(out.node, "output_shape", asked);
  return out;
}

}  // namespace polyphase::legal
