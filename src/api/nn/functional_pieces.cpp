// Functions of pieces: joined, cut, reversed, chosen.
#include <algorithm>

#include "api/nn/write.h"

namespace polyphase::api::nn::functional {
namespace {

std::vector<std::int64_t> ones(int count) { return std::vector<std::int64_t>(static_cast<std::size_t>(count), 1); }

Made one_piece(Network& network, const NetworkTensor& x, std::int64_t axis, std::int64_t start, std::int64_t size) {
  std::vector<Size> starts(static_cast<std::size_t>(x.rank()), 0);
  std::vector<Size> sizes = x.shape();
  starts[static_cast<std::size_t>(axis)] = start;
  sizes[static_cast<std::size_t>(axis)] = size;
  return network.slice(x, {.start = starts, .size = sizes, .step = ones(x.rank())});
}

Result<std::vector<NetworkTensor>> pieces(Network& network, const NetworkTensor& x, std::int64_t axis,
                                          const std::vector<std::int64_t>& sections) {
  std::vector<NetworkTensor> made;
  std::int64_t start = 0;
  for (const std::int64_t size : sections) {
    TRY(made.emplace_back(), one_piece(network, x, axis, start, size));
    start += size;
  }
  return made;
}

std::vector<std::int64_t> equal_sections(std::int64_t size, std::int64_t piece) {
  return std::vector<std::int64_t>(static_cast<std::size_t>(size / piece), piece);
}

// The element of this index and no other; the axis stays, with size 1.
Made narrowed(Network& network, const NetworkTensor& x, std::int64_t axis, std::int64_t index) {
  const Size size = x.size(static_cast<int>(axis));
  const auto number = size.number();
  if (number.has_value() && (index < -*number || index >= *number)) {
    return refused_layer("tensor '" + x.name() + "' is indexed at " + std::to_string(index) + " of axis " +
                             std::to_string(axis) + ", which has " + std::to_string(*number) + " places.",
                         "Places count from 0, or from the end: -1 is the last.");
  }
  if (number == 1) return x;
  std::vector<Size> starts(static_cast<std::size_t>(x.rank()), 0);
  std::vector<Size> sizes = x.shape();
  starts[static_cast<std::size_t>(axis)] = index >= 0 ? Size(index) : size + Size(index);
  sizes[static_cast<std::size_t>(axis)] = 1;
  return network.slice(x, {.start = starts, .size = sizes, .step = ones(x.rank())});
}

bool is_whole_number(const Operand& operand) {
  return operand.number<std::int64_t>() != nullptr || operand.number<bool>() != nullptr;
}

}  // namespace

Result<NetworkTensor> concat(const std::vector<Operand>& inputs, std::int64_t dim) {
  if (inputs.empty()) return refused_layer("concat is given no tensors.", "Give one or more.");
  return in_network_of(inputs, [&](Network& network) -> Made {
    std::optional<DType> of_tensors;
    for (const Operand& one : inputs) {
      if (!of_tensors.has_value() && one.tensor() != nullptr) of_tensors = one.tensor()->dtype();
    }
    std::vector<Operand> parts;
    std::optional<NetworkTensor> first;
    for (const Operand& one : inputs) {
      const bool whole = is_whole_number(one);
      TRY(NetworkTensor x, whole ? number_constant(network, one, true) : tensor_of(network, one, "an input"));
      if (whole && x.dtype() != *of_tensors) {
        TRY(x, network.cast(x, {.to = *of_tensors}));
      }
      if (x.rank() == 0) {
        TRY(x, network.reshape(x, {.shape = {1}}));
      }
      if (!first.has_value()) first = x;
      parts.emplace_back(x);
    }
    TRY(const std::int64_t axis, axis_of(*first, dim));
    return network.concat(parts, {.axis = axis});
  });
}

Result<NetworkTensor> slice(const Operand& input, const std::vector<Size>& starts, const std::vector<Size>& sizes) {
  return on_tensor(input, "input", [&](Network& network, const NetworkTensor& x) -> Made {
    return network.slice(x, {.start = starts, .size = sizes, .step = ones(x.rank())});
  });
}

Result<std::vector<NetworkTensor>> split(const Operand& tensor, const Numbers& split_size_or_sections,
                                         std::int64_t dim) {
  using Pieces = Result<std::vector<NetworkTensor>>;
  return on_tensor(tensor, "tensor", [&](Network& network, const NetworkTensor& x) -> Pieces {
    TRY(const std::int64_t axis, axis_of(x, dim));
    const Size whole = x.size(static_cast<int>(axis));
    const auto size = whole.number();
    if (!size.has_value()) {
      return refused_layer("axis " + std::to_string(axis) + " of tensor '" + x.name() + "' is " + whole.text() +
                               ", and has no pieces that are known now.",
                           "Use slice.");
    }
    const std::vector<std::int64_t>& sections = split_size_or_sections.list();
    if (split_size_or_sections.is_one()) {
      const std::int64_t piece = sections.front();
      if (piece >= 1 && *size % piece == 0) return pieces(network, x, axis, equal_sections(*size, piece));
      return refused_layer("split size " + std::to_string(piece) + " does not divide axis " + std::to_string(axis) +
                               " of tensor '" + x.name() + "', which has " + std::to_string(*size) + " elements.",
                           "Give a divisor, or a list of sizes.");
    }
    std::int64_t left = *size;
    for (const std::int64_t one : sections) left = one < 0 || left < 0 || one > left ? -1 : left - one;
    if (left != 0) {
      return refused_layer("split_with_sizes expects split_sizes to sum exactly to " + std::to_string(*size) +
                               " (input tensor's size at dimension " + std::to_string(axis) +
                               "), but got split_sizes=" + list_text(sections),
                           "Give sizes that fill the axis.");
    }
    return pieces(network, x, axis, sections);
  });
}

Result<std::vector<NetworkTensor>> chunk(const Operand& tensor, std::int64_t chunks, std::int64_t dim) {
  using Pieces = Result<std::vector<NetworkTensor>>;
  return on_tensor(tensor, "tensor", [&](Network& network, const NetworkTensor& x) -> Pieces {
    TRY(const std::int64_t axis, axis_of(x, dim));
    const Size whole = x.size(static_cast<int>(axis));
    const auto size = whole.number();
    if (!size.has_value() || chunks < 1 || *size % chunks != 0) {
      return refused_layer(std::to_string(chunks) + " chunks do not divide axis " + std::to_string(axis) +
                               " of tensor '" + x.name() + "', which has " + whole.text() + " elements.",
                           "Give a divisor, or use split.");
    }
    const std::vector<std::int64_t> sections(static_cast<std::size_t>(chunks), *size / chunks);
    return pieces(network, x, axis, sections);
  });
}

Result<NetworkTensor> flip(const Operand& input, const Numbers& dims) {
  return on_tensor(input, "input", [&](Network& network, const NetworkTensor& x) -> Made {
    TRY(const auto axes, axes_of(x, dims, "dims"));
    std::vector<Size> starts(static_cast<std::size_t>(x.rank()), 0);
    std::vector<std::int64_t> steps = ones(x.rank());
    for (const std::int64_t axis : axes) {
      starts[static_cast<std::size_t>(axis)] = x.size(static_cast<int>(axis)) - 1;
      steps[static_cast<std::size_t>(axis)] = -1;
    }
    return network.slice(x, {.start = starts, .size = x.shape(), .step = steps});
  });
}

Result<NetworkTensor> select(const Operand& input, std::int64_t dim, const Operand& index) {
  return in_network_of({input, index}, [&](Network& network) -> Made {
    TRY(const NetworkTensor x, tensor_of(network, input, "input"));
    TRY(const std::int64_t axis, axis_of(x, dim));
    if (const auto* number = index.number<std::int64_t>()) {
      TRY(const NetworkTensor piece, narrowed(network, x, axis, *number));
      std::vector<Size> sizes = x.shape();
      sizes.erase(sizes.begin() + axis);
      return network.reshape(piece, {.shape = sizes});
    }
    TRY(NetworkTensor at, tensor_of(network, index, "index"));
    if (at.rank() != 0) {
      TRY(at, network.reshape(at, {.shape = std::vector<Size>()}));
    }
    return network.gather(x, at, {.axis = axis});
  });
}

Result<NetworkTensor> index_select(const Operand& input, std::int64_t dim, const Operand& index) {
  return in_network_of({input, index}, [&](Network& network) -> Made {
    TRY(const NetworkTensor x, tensor_of(network, input, "input"));
    TRY(NetworkTensor at, tensor_of(network, index, "index"));
    if (at.rank() > 1) {
      return refused_layer(
          "index_select(): Index is supposed to be a vector, but got dim: " + std::to_string(at.rank()),
          "Give a vector.");
    }
    if (at.rank() == 0) {
      TRY(at, network.reshape(at, {.shape = {1}}));
    }
    TRY(const std::int64_t axis, axis_of(x, dim));
    return network.gather(x, at, {.axis = axis});
  });
}

Result<NetworkTensor> gather(const Operand& input, std::int64_t dim, const Operand& indices) {
  return in_network_of({input, indices}, [&](Network& network) -> Made {
    TRY(const NetworkTensor x, tensor_of(network, input, "input"));
    TRY(const std::int64_t axis, axis_of(x, dim));
    const bool number = is_whole_number(indices);
    TRY(NetworkTensor at, number ? number_constant(network, indices, true) : tensor_of(network, indices, "indices"));
    if (number) {
      TRY(at, network.reshape(at, {.shape = std::vector<Size>(static_cast<std::size_t>(x.rank()), 1)}));
    }
    if (at.rank() != x.rank()) {
      return refused_layer(
          "Index tensor must have the same number of dimensions as input tensor",
          "indices have rank " + std::to_string(at.rank()) + ", input has rank " + std::to_string(x.rank()) + ".");
    }
    return network.gather_elements(x, at, {.axis = axis});
  });
}

Result<NetworkTensor> where(const Operand& condition, const Operand& input, const Operand& other) {
  return in_network_of({condition, input, other}, [&](Network& network) -> Made {
    return network.where(tensor_of(network, condition, "condition"), input, other);
  });
}

}  // namespace polyphase::api::nn::functional
