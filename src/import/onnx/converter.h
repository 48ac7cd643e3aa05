// Converter: how one ONNX operator becomes IR nodes; the table of all of them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "import/compose/emitter.h"

namespace polyphase {

class NodeContext;

inline constexpr int any_number = 1 << 20;  // of operands or results

struct Converter {
  std::string_view op_type;
  // Every version ("since opset") of the operator that a model of the opsets we take can use, oldest first.
  std::vector<int> versions;
  int min_inputs = 1;  // operands that must be there
  int max_inputs = 1;
  // One value per result, in order; a null stands for a result that we do not compute, which nobody may then use.
  Result<Values> (*convert)(NodeContext&) = nullptr;
  std::string_view domain = {};  // "" is ONNX's own
};

// The families, one file each.
std::vector<Converter> activation_converters();
std::vector<Converter> arithmetic_converters();
std::vector<Converter> attention_converters();
std::vector<Converter> composite_converters();
std::vector<Converter> constant_converters();
std::vector<Converter> convolution_converters();
std::vector<Converter> detection_converters();
std::vector<Converter> einsum_converters();
std::vector<Converter> gather_converters();
std::vector<Converter> grid_converters();
std::vector<Converter> local_norm_converters();
std::vector<Converter> loss_converters();
std::vector<Converter> matmul_converters();
std::vector<Converter> microsoft_converters();
std::vector<Converter> microsoft_norm_converters();
std::vector<Converter> normalization_converters();
std::vector<Converter> pad_converters();
std::vector<Converter> pool_converters();
std::vector<Converter> quantize_converters();
std::vector<Converter> random_converters();
std::vector<Converter> rearrange_converters();
std::vector<Converter> recurrence_converters();
std::vector<Converter> reduce_converters();
std::vector<Converter> reshape_converters();
std::vector<Converter> resize_converters();
std::vector<Converter> scatter_converters();
std::vector<Converter> selection_converters();
std::vector<Converter> shape_converters();
std::vector<Converter> signal_converters();
std::vector<Converter> slice_converters();
std::vector<Converter> softmax_converters();

// All converters by (domain, operator).
// The nodes that a plugin claims, whatever their versions: converted by the plugin's operator.
Converter claimed_converter(std::string_view domain, std::string_view op_type);

class ConverterTable {
 public:
  using Key = std::pair<std::string_view, std::string_view>;  // domain, operator; the text is the converter's
  ConverterTable();
  const Converter* find(std::string_view domain, std::string_view op_type) const;
  const std::map<Key, Converter>& all() const { return converters_; }

 private:
  std::map<Key, Converter> converters_;
};

// Whether a node has the operands that the operator needs, and no more than it takes; `present` has one entry each.
Result<void> check_operands(const Converter& converter, const std::vector<bool>& present);

// The version of the operator that a model of this opset means: the newest that is not newer. 0: it did not exist yet.
int version_at(const Converter& converter, std::int64_t opset);

}  // namespace polyphase
