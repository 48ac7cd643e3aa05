// AtenConverter: how one overload of ATen, or of a library like it, becomes IR nodes; the table of all of them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "import/compose/emitter.h"
#include "import/torch/schema.h"
#include "ops/op.h"

namespace polyphase {

class AtenNode;

struct AtenEntry {
  // As torch.ops.LIBRARY.NAME.OVERLOAD._schema prints it; of ATen without "aten::".
  std::string_view schema;
  // One value per result tensor, the entries of a result that is a list in order; a null stands for a result that we do
  // not compute, which nobody may then use. What is wrong with the node is an Error that says why it is refused.
  Result<Values> (*convert)(AtenNode&) = nullptr;
  bool also_in_place = false;  // ATen has NAME_ of this overload, which writes the result into operand 0
  // Where an operand or a result is complex (AtenNode::is_complex); null: such nodes are refused.
  Result<Values> (*convert_complex)(AtenNode&) = nullptr;
};

// What an overload of another family does with complex numbers.
struct AtenComplexEntry {
  std::string_view overload;  // "add.Tensor"; holds for add_.Tensor too
  Result<Values> (*convert)(AtenNode&) = nullptr;
};

// The same under another name, with the same parameters.
struct AtenAlias {
  std::string_view schema;
  std::string_view of;
  bool also_in_place = false;
};

struct AtenConverter {
  std::string_view declaration;  // the entry's
  AtenSchema schema;
  Result<Values> (*convert)(AtenNode&) = nullptr;
  bool in_place = false;  // made of an entry's `also_in_place`
  Result<Values> (*convert_complex)(AtenNode&) = nullptr;
};

// The families, one file each.
std::vector<AtenEntry> aten_activation_entries();
std::vector<AtenEntry> aten_adaptive_entries();
std::vector<AtenEntry> aten_arithmetic_entries();
std::vector<AtenEntry> aten_complex_entries();
std::vector<AtenEntry> aten_composite_entries();
std::vector<AtenEntry> aten_convolution_entries();
std::vector<AtenEntry> aten_create_entries();
std::vector<AtenEntry> aten_data_entries();
std::vector<AtenEntry> aten_distance_entries();
std::vector<AtenEntry> aten_embedding_bag_entries();
std::vector<AtenEntry> aten_fold_entries();
std::vector<AtenEntry> aten_fourier_entries();
std::vector<AtenEntry> aten_matmul_entries();
std::vector<AtenEntry> aten_norm_entries();
std::vector<AtenEntry> aten_order_entries();
std::vector<AtenEntry> aten_pad_entries();
std::vector<AtenEntry> aten_piece_entries();
std::vector<AtenEntry> aten_recurrence_entries();
std::vector<AtenEntry> aten_reduce_entries();
std::vector<AtenEntry> aten_resample_entries();
std::vector<AtenEntry> aten_scatter_entries();
std::vector<AtenEntry> aten_shape_entries();
std::vector<AtenEntry> aten_spectrogram_entries();
std::vector<AtenEntry> aten_strided_entries();
std::vector<AtenEntry> torchvision_entries();
std::vector<AtenAlias> aten_aliases();
std::vector<AtenComplexEntry> aten_complex_arithmetic();
std::vector<AtenComplexEntry> aten_complex_shapes();

// How the nodes of an overload that a plugin claims become its operator `op`; `claim` must stay.
AtenConverter claimed_converter(const OpDef& op, std::string_view claim);

class AtenTable {
 public:
  AtenTable();
  // By the target of a program's node: "torch.ops.aten.relu.default". Null: there is none.
  const AtenConverter* find(std::string_view target) const;
  // "aten.relu.default", "torchvision.deform_conv2d.default" → its converter.
  const std::map<std::string, AtenConverter, std::less<>>& all() const { return converters_; }

 private:
  std::map<std::string, AtenConverter, std::less<>> converters_;
};

}  // namespace polyphase
