// Complex numbers in another shape or order: what the converters of real numbers do, with the pairs on an axis of their
// own behind all others.
#include <algorithm>

#include "import/torch/complex_parts.h"
#include "import/torch/names.h"

namespace polyphase {
namespace {

using Sizes = Composer::Sizes;

// Axes counted from the end would count the pairs' axis as well: they become axes from the beginning.
void count_from_begin(AtenNode& node, std::string_view parameter, int rank) {
  for (AtenScalar& axis : node.change(parameter).scalars) {
    if (axis.size.is_constant() && axis.size.value() < 0 && axis.size.value() >= -rank) axis.size += rank;
  }
}

void append(AtenNode& node, std::string_view parameter, std::int64_t number) {
  AtenScalar entry;
  entry.size = number;
  entry.value = static_cast<double>(number);
  node.change(parameter).scalars.push_back(entry);
}

// The numbers of dtype arguments stand for what the parts are stored in.
void store_parts(AtenNode& node) {
  if (node.takes("dtype")) node.change("dtype").none = true;
}

// Real tensors among complex ones become complex, so that all have the axis.
void make_complex(AtenNode& node, Composer& c, std::string_view parameter) {
  const DType dtype = node.result_dtype().value_or(DType::f32);
  AtenArgument& given = node.change(parameter);
  for (std::size_t i = 0; i < given.tensors.size(); ++i) {
    if (given.tensors[i] == nullptr) continue;
    given.tensors[i] = as_pairs(c, given.tensors[i], given.complex[i], dtype);
    given.complex[i] = true;
  }
}

struct Lift {
  std::string_view first_axis = {};  // parameters that name axes
  std::string_view second_axis = {};
  std::string_view list = {};  // gets an entry more for the pairs
  std::int64_t entry = 0;      // -1: the number of the pairs' axis
  int more_axes = 0;           // that the axes may count beyond the operand's
  std::string_view operand = "self";
  std::string_view second_operand = {};
};

template <const Lift* lift>
Result<Values> convert_lifted(AtenNode& node) {
  Composer c(node);
  for (const std::string_view operand : {lift->operand, lift->second_operand}) {
    if (!operand.empty()) make_complex(node, c, operand);
  }
  const int rank = program_rank(node, lift->operand) + lift->more_axes;
  for (const std::string_view axis : {lift->first_axis, lift->second_axis}) {
    if (!axis.empty()) count_from_begin(node, axis, rank);
  }
  if (!lift->list.empty()) append(node, lift->list, lift->entry < 0 ? rank : lift->entry);
  if (!c.ok()) return c.results({});
  return node.converter().convert(node);
}

// Linear in its complex operands: the real parts by themselves, then the imaginary ones.
template <const char* operand>
Result<Values> convert_by_parts(AtenNode& node) {
  Composer c(node);
  store_parts(node);
  make_complex(node, c, operand);
  std::vector<ComplexParts> parts;
  for (Value* const one : node.tensors(operand)) parts.push_back(parts_of(c, one));
  if (!c.ok()) return c.results({});
  AtenArgument& given = node.change(operand);
  for (std::size_t i = 0; i < parts.size(); ++i) given.tensors[i] = parts[i].real;
  TRY(const Values real, node.converter().convert(node));
  for (std::size_t i = 0; i < parts.size(); ++i) given.tensors[i] = parts[i].imaginary;
  TRY(const Values imaginary, node.converter().convert(node));
  Values out;
  for (std::size_t i = 0; i < real.size(); ++i) out.push_back(joined(c, {real[i], imaginary[i]}));
  return c.results(std::move(out));
}

// Pads pairs of sizes from the last axis on: none for the pairs themselves.
Result<Values> convert_complex_pad(AtenNode& node) {
  if (node.takes("mode") && node.word("mode") != "constant") return convert_by_parts<name_self>(node);
  const bool fills =
      node.has("value") && node.scalar("value").kind != AtenScalar::Kind::complex && node.real("value") != 0;
  if (fills || (node.has("value") && node.scalar("value").kind == AtenScalar::Kind::complex))
    return lacking("complex numbers are padded with something other than 0.", "Pad the real and imaginary parts.");
  AtenArgument& pad = node.change("pad");
  pad.scalars.insert(pad.scalars.begin(), 2, AtenScalar{});
  for (std::size_t i = 0; i < 2; ++i) pad.scalars[i].size = 0;
  return node.converter().convert(node);
}

// A new tensor of zeros: one size more.
Result<Values> convert_zeros(AtenNode& node) {
  node.change("dtype").none = true;
  append(node, "size", 2);
  return node.converter().convert(node);
}

Result<Values> convert_zeros_like(AtenNode& node) {
  Composer c(node);
  Value* const like =
      as_pairs(c, node.tensor("self"), node.is_complex("self"), node.result_dtype().value_or(DType::f32));
  if (!node.gives_complex()) return c.results({nothing_like(c, parts_of(c, like).real)});
  return c.results({nothing_like(c, like)});
}

// One pair everywhere.
template <const char* parameter>
Result<Values> convert_complex_filled(AtenNode& node) {
  Composer c(node);
  Value* const pair = as_pairs(node, c, parameter, node.result_dtype().value_or(DType::f32));
  if (!node.gives_complex()) return lacking("a complex number in a real tensor.", "Give it a real number.");
  Sizes sizes;
  if (node.takes("size")) sizes = node.sizes("size");
  if (node.takes("self")) {
    sizes = node.tensor("self")->type.shape.dims();
    if (node.is_complex("self")) sizes.pop_back();
  }
  sizes.emplace_back(2);
  return c.results({c.expand(pair, std::move(sizes))});
}

constexpr Lift same{};
constexpr Lift along_dim{.first_axis = "dim"};
constexpr Lift along_dims{.first_axis = "dims"};
constexpr Lift list_along_dim{.first_axis = "dim", .operand = "tensors"};
constexpr Lift list_along_new_dim{.first_axis = "dim", .more_axes = 1, .operand = "tensors"};
constexpr Lift along_new_dim{.first_axis = "dim", .more_axes = 1};
constexpr Lift with_size{.list = "size", .entry = 2};
constexpr Lift with_shape{.list = "shape", .entry = 2};
constexpr Lift with_repeats{.list = "repeats", .entry = 1};
constexpr Lift between{.first_axis = "start_dim", .second_axis = "end_dim"};
constexpr Lift exchange_dims{.first_axis = "dim0", .second_axis = "dim1"};
constexpr Lift exchange_axes{.first_axis = "axis0", .second_axis = "axis1"};
constexpr Lift move{.first_axis = "source", .second_axis = "destination"};
constexpr Lift reorder{.first_axis = "dims", .list = "dims", .entry = -1};
constexpr Lift with_source{.second_operand = "src"};
constexpr Lift with_source_along_dim{.first_axis = "dim", .second_operand = "src"};
constexpr Lift with_values{.second_operand = "values"};

}  // namespace

std::vector<AtenComplexEntry> aten_complex_shapes() {
  return {
      {"_unsafe_index.Tensor", convert_lifted<&same>},
      {"_unsafe_view", convert_lifted<&with_size>},
      {"alias", convert_lifted<&same>},
      {"broadcast_tensors", convert_by_parts<name_tensors>},
      {"broadcast_to", convert_lifted<&with_size>},
      {"cat", convert_lifted<&list_along_dim>},
      {"chunk", convert_lifted<&along_dim>},
      {"clone", convert_lifted<&same>},
      {"concat", convert_lifted<&list_along_dim>},
      {"constant_pad_nd", convert_complex_pad},
      {"contiguous", convert_lifted<&same>},
      {"copy", convert_lifted<&with_source>},
      {"cumsum", convert_by_parts<name_self>},
      {"detach", convert_lifted<&same>},
      {"diagonal", convert_by_parts<name_self>},
      {"expand", convert_lifted<&with_size>},
      {"flatten.using_ints", convert_lifted<&between>},
      {"flip", convert_lifted<&along_dims>},
      {"full", convert_complex_filled<name_fill_value>},
      {"full_like", convert_complex_filled<name_fill_value>},
      {"gather", convert_by_parts<name_self>},
      {"index.Tensor", convert_lifted<&same>},
      {"index_put", convert_lifted<&with_values>},
      {"index_select", convert_lifted<&along_dim>},
      {"lift_fresh_copy", convert_lifted<&same>},
      {"mean", convert_by_parts<name_self>},
      {"mean.dim", convert_by_parts<name_self>},
      {"movedim.int", convert_lifted<&move>},
      {"movedim.intlist", convert_lifted<&move>},
      {"narrow", convert_lifted<&along_dim>},
      {"new_zeros", convert_zeros},
      {"pad", convert_complex_pad},
      {"permute", convert_lifted<&reorder>},
      {"repeat", convert_lifted<&with_repeats>},
      {"repeat_interleave.self_int", convert_by_parts<name_self>},
      {"reshape", convert_lifted<&with_shape>},
      {"roll", convert_by_parts<name_self>},
      {"rot90", convert_lifted<&along_dims>},
      {"scalar_tensor", convert_complex_filled<name_s>},
      {"select.int", convert_lifted<&along_dim>},
      {"select_scatter", convert_lifted<&with_source_along_dim>},
      {"slice.Tensor", convert_lifted<&along_dim>},
      {"slice_scatter", convert_lifted<&with_source_along_dim>},
      {"split.Tensor", convert_lifted<&along_dim>},
      {"split_with_sizes", convert_lifted<&along_dim>},
      {"squeeze", convert_lifted<&same>},
      {"squeeze.dim", convert_lifted<&along_dim>},
      {"squeeze.dims", convert_lifted<&along_dim>},
      {"stack", convert_lifted<&list_along_new_dim>},
      {"sum", convert_by_parts<name_self>},
      {"sum.dim_IntList", convert_by_parts<name_self>},
      {"swapaxes", convert_lifted<&exchange_axes>},
      {"swapdims", convert_lifted<&exchange_dims>},
      {"t", convert_by_parts<name_self>},
      {"tile", convert_by_parts<name_self>},
      {"transpose.int", convert_lifted<&exchange_dims>},
      {"unbind.int", convert_lifted<&along_dim>},
      {"unflatten.int", convert_lifted<&along_dim>},
      {"unfold", convert_by_parts<name_self>},
      {"unsqueeze", convert_lifted<&along_new_dim>},
      {"view", convert_lifted<&with_size>},
      {"zeros", convert_zeros},
      {"zeros_like", convert_zeros_like},
  };
}

}  // namespace polyphase
