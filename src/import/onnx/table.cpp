// The table of contents of the importer.
#include "base/check.h"
#include "import/onnx/converter.h"

namespace polyphase {

ConverterTable::ConverterTable() {
  for (auto* family :
       {activation_converters, arithmetic_converters,  attention_converters,      composite_converters,
        constant_converters,   convolution_converters, detection_converters,      einsum_converters,
        gather_converters,     grid_converters,        local_norm_converters,     loss_converters,
        matmul_converters,     microsoft_converters,   microsoft_norm_converters, normalization_converters,
        pad_converters,        pool_converters,        quantize_converters,       random_converters,
        rearrange_converters,  recurrence_converters,  reduce_converters,         reshape_converters,
        resize_converters,     scatter_converters,     selection_converters,      shape_converters,
        signal_converters,     slice_converters,       softmax_converters}) {
    for (Converter& converter : family()) {
      const Key key(converter.domain, converter.op_type);
      CHECK(converters_.emplace(key, std::move(converter)).second, "an operator has two converters");
    }
  }
}

const Converter* ConverterTable::find(std::string_view domain, std::string_view op_type) const {
  const auto found = converters_.find(Key(domain, op_type));
  return found == converters_.end() ? nullptr : &found->second;
}

int version_at(const Converter& converter, std::int64_t opset) {
  int found = 0;
  for (const int version : converter.versions) {
    if (version <= opset) found = version;
  }
  return found;
}

}  // namespace polyphase
