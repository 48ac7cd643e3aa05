// The table of contents of the importer of PyTorch programs.
#include "base/check.h"
#include "import/torch/converter.h"

namespace polyphase {
namespace {

constexpr std::string_view prefix = "torch.ops.";

// "add.Tensor" → "add_.Tensor", "relu" → "relu_"
std::string in_place_name(const std::string& name) {
  const auto dot = std::min(name.find('.'), name.size());
  return name.substr(0, dot) + "_" + name.substr(dot);
}

// "add.Tensor" → "aten.add.Tensor", "torchvision::deform_conv2d" → "torchvision.deform_conv2d.default"
std::string full_name(const std::string& name) {
  const auto colons = name.find("::");
  const std::string library = colons == std::string::npos ? "aten" : name.substr(0, colons);
  const std::string own = colons == std::string::npos ? name : name.substr(colons + 2);
  return library + "." + own + (own.find('.') == std::string::npos ? ".default" : "");
}

// NAME_ of an overload, which writes into operand 0.
AtenConverter writing(AtenConverter converter) {
  converter.in_place = true;
  converter.schema.name = in_place_name(converter.schema.name);
  converter.schema.parameters.at(0).name = "self";
  converter.schema.parameters.at(0).alias = "a!";
  converter.schema.result_aliases.at(0) = "a!";
  return converter;
}

}  // namespace

AtenTable::AtenTable() {
  const auto add = [this](AtenConverter converter) {
    std::string name = full_name(converter.schema.name);
    const bool fresh = converters_.emplace(std::move(name), std::move(converter)).second;
    CHECK(fresh, "an overload has two converters");
  };
  for (auto* family :
       {aten_activation_entries, aten_adaptive_entries,      aten_arithmetic_entries,  aten_complex_entries,
        aten_composite_entries,  aten_convolution_entries,   aten_create_entries,      aten_data_entries,
        aten_distance_entries,   aten_embedding_bag_entries, aten_fold_entries,        aten_fourier_entries,
        aten_matmul_entries,     aten_norm_entries,          aten_order_entries,       aten_pad_entries,
        aten_piece_entries,      aten_recurrence_entries,    aten_reduce_entries,      aten_resample_entries,
        aten_scatter_entries,    aten_shape_entries,         aten_spectrogram_entries, aten_strided_entries,
        torchvision_entries}) {
    for (const AtenEntry& entry : family()) {
      AtenConverter converter{entry.schema, parse_schema(entry.schema), entry.convert, false, entry.convert_complex};
      if (entry.also_in_place) add(writing(converter));
      add(std::move(converter));
    }
  }
  for (auto* family : {aten_complex_arithmetic, aten_complex_shapes}) {
    for (const AtenComplexEntry& entry : family()) {
      const std::string name(entry.overload);
      const auto found = converters_.find(full_name(name));
      CHECK(found != converters_.end(), "complex numbers for an overload without converter");
      found->second.convert_complex = entry.convert;
      const auto writing = converters_.find(full_name(in_place_name(name)));
      if (writing != converters_.end()) writing->second.convert_complex = entry.convert;
    }
  }
  for (const AtenAlias& alias : aten_aliases()) {
    const auto found = converters_.find(full_name(std::string(alias.of)));
    CHECK(found != converters_.end(), "another name of an overload without converter");
    AtenConverter converter = found->second;
    converter.declaration = alias.schema;
    converter.schema = parse_schema(alias.schema);
    if (alias.also_in_place) add(writing(converter));
    add(std::move(converter));
  }
}

const AtenConverter* AtenTable::find(std::string_view target) const {
  if (target.substr(0, prefix.size()) != prefix) return nullptr;
  const auto found = converters_.find(target.substr(prefix.size()));
  return found == converters_.end() ? nullptr : &found->second;
}

}  // namespace polyphase
