// What the functions of polyphase/nn_functional.h share: operands as tensors, axes, numbers for each axis, and their
// words.
#pragma once

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "api/state.h"
#include "base/result.h"
#include "polyphase/nn_functional.h"

namespace polyphase::api::nn {

using Made = Result<NetworkTensor>;

// f(network), with the network that the operands are of; its Error if one of them has one.
template <typename F>
auto in_network_of(const std::vector<Operand>& operands, F&& f) -> decltype(f(std::declval<Network&>())) {
  return without_throwing([&]() -> decltype(f(std::declval<Network&>())) {
    TRY(Network network, Network::of(operands));
    return f(network);
  });
}
// The same for functions of one tensor: f(network, x).
template <typename F>
auto on_tensor(const Operand& x, const char* what, F&& f)
    -> decltype(f(std::declval<Network&>(), std::declval<const NetworkTensor&>()));

inline Error refused_layer(std::string message, std::string hint) {
  return Error{ErrorCode::invalid_argument, std::move(message), std::move(hint)};
}

// An operand as a tensor; numbers become constants. Error: it is absent.
Made tensor_of(Network& network, const Operand& operand, const char* what);
// A constant of one element, of rank 0 or a vector of it. The operand is a number.
Made number_constant(Network& network, const Operand& number, bool vector);

template <typename F>
auto on_tensor(const Operand& x, const char* what, F&& f)
    -> decltype(f(std::declval<Network&>(), std::declval<const NetworkTensor&>())) {
  return in_network_of({x}, [&](Network& network) -> decltype(f(network, std::declval<const NetworkTensor&>())) {
    TRY(const NetworkTensor tensor, tensor_of(network, x, what));
    return f(network, tensor);
  });
}

// An axis counted from 0; of a tensor of this rank, or of its own.
Result<std::int64_t> axis_of(const NetworkTensor& x, std::int64_t dim, const char* what = "dim", int rank = -1);
// Several, each once.
Result<std::vector<std::int64_t>> axes_of(const NetworkTensor& x, const Numbers& dims, const char* what = "dim",
                                          int rank = -1);
// One integer for each of `count` spatial axes.
Result<std::vector<std::int64_t>> per_axis(const Numbers& given, std::size_t count, const char* what);

// "[1, 64, H]", "(1, 64)", "1.5": as Python writes lists, tuples and floats.
std::string list_text(const std::vector<Size>& sizes);
std::string list_text(const std::vector<std::int64_t>& numbers);
std::string tuple_text(const std::vector<std::int64_t>& numbers);
std::string list_text(const Reals& reals);

// The dtypes of functional::cast and Cast, and how Python calls a dtype.
bool can_cast_to(DType dtype);
std::string python_name(DType dtype);

inline bool is_float(const NetworkTensor& x) { return polyphase::is_float(x.dtype()); }

// The values of a vector of integers as sizes, which a run tells.
Result<std::vector<Size>> values_of(Network& network, const Operand& shape);

// A convolution over `spatial` axes; padding_mode: zeros, reflect, replicate, circular.
Made convolution(int spatial, const Operand& input, const Operand& weight, const Operand& bias,
                 const functional::ConvOptions& options, const std::string& padding_mode);
// output_size: what PyTorch's layers take for it, or nothing.
Made transposed_convolution(int spatial, const Operand& input, const Operand& weight, const Operand& bias,
                            const functional::ConvTransposeOptions& options, const Sizes& output_size);

// The rows of network `pad` for a padding_mode or mode of PyTorch's; null: there is none of that name.
const char* padding_word(std::string_view mode);

}  // namespace polyphase::api::nn
