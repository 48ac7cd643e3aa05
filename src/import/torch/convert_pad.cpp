// Padding.
#include <string_view>

#include "import/compose/composer.h"
#include "import/torch/aten_node.h"
#include "import/torch/names.h"

namespace polyphase {
namespace {

using Sizes = Composer::Sizes;

// Pairs (before, behind) from the last axis on.
Result<Value*> padded(AtenNode& node, Composer& c, const Sizes& pairs, const char* mode, double value) {
  Value* x = node.tensor("self");
  const auto rank = static_cast<std::size_t>(c.rank(x));
  if (pairs.size() % 2 != 0 || pairs.size() / 2 > rank)
    return broken_program("Length of pad must be even and at most twice the rank; found " +
                          std::to_string(pairs.size()) + " for rank " + std::to_string(rank) + ".");
  Sizes pre(rank, Dim(0));
  Sizes post(rank, Dim(0));
  for (std::size_t i = 0; i < pairs.size() / 2; ++i) {
    pre[rank - 1 - i] = pairs[2 * i];
    post[rank - 1 - i] = pairs[2 * i + 1];
  }
  if (rank == 0) return x;
  if (std::string_view(mode) == "wrap") {  // what is cropped does not come round again
    Sizes crop_before(rank, Dim(0));
    Sizes crop_behind(rank, Dim(0));
    for (std::size_t i = 0; i < rank; ++i) {
      crop_before[i] = min(pre[i], 0);
      crop_behind[i] = min(post[i], 0);
      pre[i] = max(pre[i], 0);
      post[i] = max(post[i], 0);
    }
    x = c.op("pad", {x}, Attributes({{"pre", std::move(crop_before)}, {"post", std::move(crop_behind)}}));
  }
  return c.result(c.op(
      "pad", {x}, Attributes({{"pre", std::move(pre)}, {"post", std::move(post)}, {"mode", mode}, {"value", value}})));
}

Result<Values> convert_constant_pad(AtenNode& node) {
  Composer c(node);
  TRY(Value * y, padded(node, c, node.sizes("pad"), "constant", node.real("value")));
  return Values{y};
}

template <const char* mode>
Result<Values> convert_mode_pad(AtenNode& node) {
  Composer c(node);
  TRY(Value * y, padded(node, c, node.sizes("padding"), mode, 0));
  return Values{y};
}

Result<Values> convert_pad(AtenNode& node) {
  Composer c(node);
  const std::string mode = node.word("mode");
  const char* const ours = mode == "constant"    ? "constant"
                           : mode == "reflect"   ? "reflect"
                           : mode == "replicate" ? "edge"
                           : mode == "circular"  ? "wrap"
                                                 : nullptr;
  if (ours == nullptr) return broken_program("Unrecognised padding mode " + mode);
  TRY(Value * y, padded(node, c, node.sizes("pad"), ours, node.has("value") ? node.real("value") : 0));
  return Values{y};
}

}  // namespace

std::vector<AtenEntry> aten_pad_entries() {
  return {
      {"constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor", convert_constant_pad},
      {"pad(Tensor self, SymInt[] pad, str mode=\"constant\", float? value=None) -> Tensor", convert_pad},
      {"reflection_pad1d(Tensor self, SymInt[2] padding) -> Tensor", convert_mode_pad<name_reflect>},
      {"reflection_pad2d(Tensor self, SymInt[4] padding) -> Tensor", convert_mode_pad<name_reflect>},
      {"reflection_pad3d(Tensor self, SymInt[6] padding) -> Tensor", convert_mode_pad<name_reflect>},
      {"replication_pad1d(Tensor self, SymInt[2] padding) -> Tensor", convert_mode_pad<name_edge>},
      {"replication_pad2d(Tensor self, SymInt[4] padding) -> Tensor", convert_mode_pad<name_edge>},
      {"replication_pad3d(Tensor self, SymInt[6] padding) -> Tensor", convert_mode_pad<name_edge>},
  };
}

}  // namespace polyphase
