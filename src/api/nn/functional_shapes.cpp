// Functions of shapes: casts, views, axes put in, repeated and turned, sizes as tensors.
#include <algorithm>

#include "api/nn/write.h"

namespace polyphase::api::nn {
namespace {

// Its length.
Result<std::int64_t> expect_vector(const NetworkTensor& shape) {
  const auto length = shape.size(0).number();
  const bool whole = shape.dtype() == DType::i64 || shape.dtype() == DType::i32;
  if (shape.rank() == 1 && length.has_value() && whole) return *length;
  return refused_layer("the shape is tensor '" + shape.name() + "', " + python_name(shape.dtype()) +
                           " with the sizes " + list_text(shape.shape()) + ".",
                       "Give a vector of integers, of known length.");
}

}  // namespace

Result<std::vector<Size>> values_of(Network& network, const Operand& shape) {
  if (shape.error() != nullptr) return Error(*shape.error());
  const NetworkTensor& tensor = *shape.tensor();
  TRY(const std::int64_t length, expect_vector(tensor));
  std::string stem = tensor.name();
  std::replace_if(
      stem.begin(), stem.end(), [](char one) { return one == '/' || one == '.'; }, '_');
  std::vector<Size> names;
  for (std::int64_t i = 0; i < length; ++i) names.emplace_back(stem + "_" + std::to_string(i));
  const auto bound = network.bind(tensor, {.symbols = names});
  if (!bound.ok()) return Error(bound.error());
  return names;
}

namespace functional {
namespace {

// The shape with what 0 and -1 in it mean.
Made whole_shape(Network& network, const NetworkTensor& x, const Operand& given, bool zero_copies) {
  if (given.error() != nullptr) return Error(*given.error());
  const NetworkTensor& shape = *given.tensor();
  TRY(const std::int64_t length, expect_vector(shape));
  Made wide = shape;
  if (shape.dtype() != DType::i64) wide = network.cast(shape, {.to = DType::i64});
  if (zero_copies) {
    std::vector<Size> sizes = x.shape();
    sizes.resize(static_cast<std::size_t>(length), 0);
    const Made is_zero = network.equal(wide, 0);
    wide = network.where(is_zero, network.dims({.values = sizes}), wide);
  }
  const Made is_open = network.equal(wide, -1);
  const Made known = network.reduce_prod(network.where(is_open, 1, wide), {.axes = {0}, .keep = false});
  const Made count = network.reduce_prod(network.dims({.values = x.shape()}), {.axes = {0}, .keep = false});
  return network.where(is_open, network.div(count, network.max(known, 1)), wide);
}

bool is_number(const Size& size, std::int64_t number) { return size.text() == std::to_string(number); }

// product(shape) // product(known), where factors that both have are crossed out.
Size remaining(std::vector<Size> left, const std::vector<Size>& known) {
  std::vector<Size> right;
  for (const Size& size : known) {
    const auto same = std::find(left.begin(), left.end(), size);
    if (same == left.end()) {
      right.push_back(size);
    } else {
      left.erase(same);
    }
  }
  Size product = 1;
  for (const Size& size : left) product = is_number(product, 1) ? size : product * size;
  for (const Size& size : right) product = product / size;
  return product;
}

Result<std::vector<Size>> viewed_sizes(const NetworkTensor& x, const std::vector<Size>& shape, bool zero_copies) {
  std::vector<Size> sizes = shape;
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    const auto number = shape[axis].number();
    if (number == 0 && zero_copies) {
      if (axis >= static_cast<std::size_t>(x.rank())) {
        return refused_layer("the shape " + list_text(shape) + " copies the size of axis " + std::to_string(axis) +
                                 ", but tensor '" + x.name() + "' has rank " + std::to_string(x.rank()) + ".",
                             "Give the size, or zero_is_placeholder=false for a size of 0.");
      }
      sizes[axis] = x.size(static_cast<int>(axis));
    } else if (number.has_value() && *number < -1) {
      return refused_layer("the shape " + list_text(shape) + " has a negative size.",
                           "Sizes are 0 or more, or -1 once.");
    }
  }
  const auto is_open = [](const Size& size) { return is_number(size, -1); };
  const auto open = std::count_if(sizes.begin(), sizes.end(), is_open);
  if (open > 1)
    return refused_layer("the shape " + list_text(sizes) + " leaves more than one size open.", "Give -1 once.");
  if (open == 1) {
    std::vector<Size> known;
    std::copy_if(sizes.begin(), sizes.end(), std::back_inserter(known),
                 [&](const Size& size) { return !is_open(size); });
    if (std::any_of(known.begin(), known.end(), [](const Size& size) { return is_number(size, 0); })) {
      return refused_layer(
          "the shape " + list_text(sizes) + " has a size of 0, so it says nothing of the one left open.",
          "Give every size.");
    }
    *std::find_if(sizes.begin(), sizes.end(), is_open) = remaining(x.shape(), known);
  }
  return sizes;
}

bool is_unsigned(const NetworkTensor& x) {
  return x.dtype() == DType::u8 || x.dtype() == DType::u16 || x.dtype() == DType::u32 || x.dtype() == DType::u64;
}

}  // namespace

Result<NetworkTensor> cast(const Operand& input, DType dtype) {
  return on_tensor(input, "input", [&](Network& network, const NetworkTensor& x) -> Made {
    if (!can_cast_to(dtype)) {
      return refused_layer("dtype is '" + python_name(dtype) + "'.",
                           "cast takes float32, float16, bfloat16, bool, int32, int8.");
    }
    if (dtype != DType::i8 || x.dtype() == DType::i8 || x.dtype() == DType::boolean)
      return network.cast(x, {.to = dtype});
    if (is_unsigned(x)) return network.cast(network.min(x, 127), {.to = DType::i8});
    if (!is_float(x)) return network.cast(network.max(network.min(x, 127), -127), {.to = DType::i8});
    const bool is_wide = x.dtype() == DType::f32 || x.dtype() == DType::f64;
    const Operand wide = is_wide ? Operand(x) : Operand(network.cast(x, {.to = DType::f32}));
    return network.cast(network.clip(network.round(wide), {.low = -127, .high = 127}), {.to = DType::i8});
  });
}

Result<NetworkTensor> view(const Operand& input, const Sizes& shape, bool zero_is_placeholder) {
  return on_tensor(input, "input", [&](Network& network, const NetworkTensor& x) -> Made {
    if (!shape.tensor().is_absent()) {
      TRY(const NetworkTensor whole, whole_shape(network, x, shape.tensor(), zero_is_placeholder));
      TRY(const auto values, values_of(network, whole));
      return network.reshape(x, {.shape = values});
    }
    TRY(const auto sizes, viewed_sizes(x, shape.list(), zero_is_placeholder));
    return network.reshape(x, {.shape = sizes});
  });
}

Result<NetworkTensor> expand_dims(const Operand& input, const Numbers& dim) {
  return on_tensor(input, "input", [&](Network& network, const NetworkTensor& x) -> Made {
    const std::size_t rank = static_cast<std::size_t>(x.rank()) + dim.list().size();
    TRY(const auto places, axes_of(x, dim, "dim", static_cast<int>(rank)));
    std::vector<Size> sizes(rank, 1);
    int left = 0;
    for (std::size_t i = 0; i < rank; ++i) {
      if (std::find(places.begin(), places.end(), i) == places.end()) sizes[i] = x.size(left++);
    }
    return network.reshape(x, {.shape = sizes});
  });
}

Result<NetworkTensor> expand(const Operand& input, const Sizes& expand_shape) {
  return on_tensor(input, "input", [&](Network& network, const NetworkTensor& x) -> Made {
    if (!expand_shape.tensor().is_absent()) {
      TRY(const auto values, values_of(network, expand_shape.tensor()));
      return network.expand(x, {.shape = values});
    }
    std::vector<Size> sizes = expand_shape.list();
    const int lead = static_cast<int>(sizes.size()) - x.rank();
    if (lead < 0) {
      return refused_layer("the number of sizes provided (" + std::to_string(sizes.size()) +
                               ") must be greater or equal to the number of dimensions in the tensor (" +
                               std::to_string(x.rank()) + ")",
                           "Give a size for each axis.");
    }
    for (int i = 0; i < static_cast<int>(sizes.size()); ++i) {
      if (!is_number(sizes[static_cast<std::size_t>(i)], -1)) continue;
      if (i < lead) {
        return refused_layer(
            "the expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension " +
                std::to_string(i),
            "Give the size.");
      }
      sizes[static_cast<std::size_t>(i)] = x.size(i - lead);
    }
    return network.expand(x, {.shape = sizes});
  });
}

Result<NetworkTensor> permute(const Operand& input, const Numbers& dims) {
  return on_tensor(input, "input", [&](Network& network, const NetworkTensor& x) -> Made {
    TRY(const auto order, axes_of(x, dims, "dims"));
    if (static_cast<int>(order.size()) != x.rank()) {
      return refused_layer("dims has " + std::to_string(order.size()) + " entries, but tensor '" + x.name() +
                               "' has rank " + std::to_string(x.rank()) + ".",
                           "Name every axis once.");
    }
    return network.transpose(x, {.order = order});
  });
}

Result<NetworkTensor> transpose(const Operand& input, std::int64_t dim0, std::int64_t dim1) {
  return on_tensor(input, "input", [&](Network& network, const NetworkTensor& x) -> Made {
    TRY(const std::int64_t first, axis_of(x, dim0, "dim0"));
    TRY(const std::int64_t second, axis_of(x, dim1, "dim1"));
    std::vector<std::int64_t> order(static_cast<std::size_t>(x.rank()));
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[static_cast<std::size_t>(first)], order[static_cast<std::size_t>(second)]);
    return network.transpose(x, {.order = order});
  });
}

Result<NetworkTensor> shape(const Operand& input, std::optional<std::int64_t> dim) {
  return on_tensor(input, "input", [&](Network& network, const NetworkTensor& x) -> Made {
    if (!dim.has_value()) return network.dims({.values = x.shape()});
    TRY(const std::int64_t axis, axis_of(x, *dim));
    return network.dims({.values = {x.size(static_cast<int>(axis))}, .scalar = true});
  });
}

Result<NetworkTensor> arange(Network network, const Size& start, const Size& end, DType dtype) {
  return without_throwing([&]() -> Made {
    const auto first = start.number();
    const auto last = end.number();
    if (first.has_value() && last.has_value() && *last < *first) {
      return refused_layer("upper bound and lower bound inconsistent with step sign",
                           "end is " + std::to_string(*last) + ", start is " + std::to_string(*first) + ".");
    }
    const Made made = network.range({.start = start, .count = end - start, .step = 1});
    return dtype == DType::i64 ? made : network.cast(made, {.to = dtype});
  });
}

}  // namespace functional
}  // namespace polyphase::api::nn
