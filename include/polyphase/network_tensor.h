// What a Network's layers are written with: sizes, tensors, operands, attributes. polyphase/network.h is what to
// include.
#pragma once

#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "polyphase/polyphase.h"

namespace polyphase::api {

template <typename T>
concept WholeNumber = std::integral<T> && !std::same_as<T, bool>;

// A size: a number, the name of a symbolic size ("H"), or an expression over names ("2*H + 1"). Arithmetic on sizes
// gives such expressions; a network brings them into one form, so that equal sizes read alike.
class Size {
 public:
  Size() = default;  // 0
  template <WholeNumber T>
  Size(T number) : text_(std::to_string(number)) {}   // NOLINT(google-explicit-constructor): numbers are sizes
  Size(std::string text) : text_(std::move(text)) {}  // NOLINT(google-explicit-constructor)
  Size(const char* text) : text_(text) {}             // NOLINT(google-explicit-constructor)

  const std::string& text() const { return text_; }
  std::optional<std::int64_t> number() const;  // nothing: it is symbolic

  friend Size operator+(const Size& a, const Size& b) { return joined(a, " + ", b); }
  friend Size operator-(const Size& a, const Size& b) { return joined(a, " - ", b); }
  friend Size operator*(const Size& a, const Size& b) { return joined(a, " * ", b); }
  friend Size operator/(const Size& a, const Size& b) { return joined(a, " // ", b); }  // rounds down
  // Whether both are one expression: 2*H + H and H*3 are.
  friend bool operator==(const Size& a, const Size& b) {
    return a.text_ == b.text_ || a.normal().text_ == b.normal().text_;
  }

  Size normal() const;  // in the form that networks give; as it is where it is no expression

 private:
  static Size joined(const Size& a, const char* sign, const Size& b) {
    return "(" + a.text_ + ")" + sign + "(" + b.text_ + ")";
  }
  std::string text_ = "0";
};

struct NetworkState;  // what a Network holds; internal

// A tensor of a network that is being written: an input, a constant or a layer's result. Copies are the same tensor.
// It keeps its network alive.
class NetworkTensor {
 public:
  NetworkTensor() = default;  // no network's; every use of it is refused
  const std::string& name() const;
  DType dtype() const;
  int rank() const;
  std::vector<Size> shape() const;
  Size size(int axis) const;  // from 0, or from the end: -1 is the last; 0 where there is no such axis

 private:
  friend class NetworkBase;
  std::shared_ptr<NetworkState> network_;
  int number_ = -1;
};

// What a layer takes: a tensor, a number (which becomes a constant of the dtype that the others have, as in PyTorch),
// or nothing, where an operand is optional. A layer's Result is taken as it is: the Error in it becomes that of the
// layer that takes it, so that a chain of layers may be tested once, at its end.
class Operand {
 public:
  Operand() = default;                                          // absent
  Operand(NetworkTensor tensor) : value_(std::move(tensor)) {}  // NOLINT(google-explicit-constructor)
  Operand(const Result<NetworkTensor>& result);                 // NOLINT(google-explicit-constructor)
  Operand(bool number) : value_(number) {}                      // NOLINT(google-explicit-constructor)
  template <WholeNumber T>
  Operand(T number) : value_(static_cast<std::int64_t>(number)) {}  // NOLINT(google-explicit-constructor)
  template <std::floating_point T>
  Operand(T number) : value_(static_cast<double>(number)) {}  // NOLINT(google-explicit-constructor)

  bool is_absent() const { return value_.index() == 0; }
  const NetworkTensor* tensor() const { return std::get_if<NetworkTensor>(&value_); }  // null: it is none
  const Error* error() const { return std::get_if<Error>(&value_); }                   // null: nothing went wrong
  template <typename T>
  const T* number() const {  // of bool, int64_t or double; null: it is none
    return std::get_if<T>(&value_);
  }

 private:
  friend class NetworkBase;
  std::variant<std::monostate, NetworkTensor, bool, std::int64_t, double, Error> value_;
};

// A layer's setting. Numbers stand for sizes and for reals where an operator wants those.
using AttributeValue = std::variant<bool, std::int64_t, double, std::string, DType, std::vector<std::int64_t>,
                                    std::vector<double>, Size, std::vector<Size>, Tensor>;
using AttributeList = std::vector<std::pair<std::string, AttributeValue>>;

// A setting without a default: leaving it out does not compile.
template <typename T>
class Required {
 public:
  template <std::convertible_to<T> U>
  Required(const U& value) : value_(value) {}  // NOLINT(google-explicit-constructor): settings are written as they are
  const T& value() const { return value_; }

 private:
  T value_;
};
template <typename T>
class Required<std::vector<T>> {
 public:
  Required(std::initializer_list<T> values) : values_(values) {}   // NOLINT(google-explicit-constructor)
  Required(std::vector<T> values) : values_(std::move(values)) {}  // NOLINT(google-explicit-constructor)
  const std::vector<T>& value() const { return values_; }

 private:
  std::vector<T> values_;
};

// What every network can: the layers of polyphase/network_layers.h are written in terms of it.
class NetworkBase {
 public:
  // A layer of any operator in docs/operators.md, by name; its results in order. Errors: invalid_argument,
  // invalid_model (the operator's own rule), each with the layer's name.
  Result<std::vector<NetworkTensor>> add_layer(std::string_view op, std::vector<Operand> operands,
                                               AttributeList attributes = {}, std::string_view name = {});

 protected:
  explicit NetworkBase(std::shared_ptr<NetworkState> state) : state_(std::move(state)) {}
  // Result i of what add_layer gave.
  static Result<NetworkTensor> result(const Result<std::vector<NetworkTensor>>& results, std::size_t i);
  NetworkState& state() const { return *state_; }
  // The operand for the builder in the state; numbers of tensors of this network.
  struct Access;

  std::shared_ptr<NetworkState> state_;
};

}  // namespace polyphase::api
