// What the functions and layers of polyphase/nn.h take where PyTorch takes an integer or a list: Numbers, Reals, Sizes.
#pragma once

#include <concepts>
#include <initializer_list>
#include <type_traits>
#include <utility>
#include <vector>

#include "polyphase/network.h"

namespace polyphase::api::nn {

// One value, which counts for every axis, or a list: `.stride = 2`, `.stride = {2, 1}`. Empty: not given.
template <typename T>
class OneOrMore {
 public:
  OneOrMore() = default;
  template <typename U>
  // NOLINTNEXTLINE(google-explicit-constructor)
  requires(std::convertible_to<U, T> && (WholeNumber<U> || !WholeNumber<T>)) OneOrMore(const U& one)
      : list_{T(one)}, is_one_(true) {}
  OneOrMore(std::initializer_list<T> more) : list_(more) {}   // NOLINT(google-explicit-constructor)
  OneOrMore(std::vector<T> more) : list_(std::move(more)) {}  // NOLINT(google-explicit-constructor)

  const std::vector<T>& list() const { return list_; }
  bool empty() const { return list_.empty(); }
  bool is_one() const { return is_one_; }  // a value by itself, no list of one
  // A list with the value for each of `count` axes.
  std::vector<T> filled(std::size_t count) const { return is_one_ ? std::vector<T>(count, list_.front()) : list_; }

 private:
  std::vector<T> list_ = {};
  bool is_one_ = false;
};

using Numbers = OneOrMore<std::int64_t>;
using Reals = OneOrMore<double>;

// Sizes, numbers or symbolic ones: `7`, `{7, "W"}`, `x->shape()`; or a tensor in their place, and each function says
// what that means: its values (view, expand), or its shape (output_size, where only a vector gives its values).
class Sizes : public OneOrMore<Size> {
 public:
  using OneOrMore<Size>::OneOrMore;
  Sizes() = default;
  Sizes(const std::vector<std::int64_t>& sizes)  // NOLINT(google-explicit-constructor)
      : OneOrMore(std::vector<Size>(sizes.begin(), sizes.end())) {}
  Sizes(const NetworkTensor& tensor) : tensor_(tensor) {}          // NOLINT(google-explicit-constructor)
  Sizes(const Result<NetworkTensor>& tensor) : tensor_(tensor) {}  // NOLINT(google-explicit-constructor)
  Sizes(const Operand& tensor) : tensor_(tensor) {}                // NOLINT(google-explicit-constructor)

  const Operand& tensor() const { return tensor_; }  // absent: sizes are given
  bool is_given() const { return !empty() || !tensor_.is_absent(); }

 private:
  Operand tensor_ = {};
};

}  // namespace polyphase::api::nn
