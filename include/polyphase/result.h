// Error and Result<T>: the user's mistakes (file, model, shape, memory) are values that say what is wrong and what to
// do.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace polyphase {

// Why something was refused. Choose the first that fits.
enum class ErrorCode : unsigned char {
  invalid_argument,  // a call or an option is wrong: name, shape, dtype or value of something the caller gave
  invalid_model,     // the model breaks a rule of its own format or of the operator's definition
  unsupported,       // legal, but Polyphase does not have it
  shape_mismatch,    // sizes known only at run time contradict the model
  io,                // a file cannot be opened, read or written
  corrupt,           // a file's bytes are not what they claim to be (checksum, truncation, structure)
  incompatible,      // a sound engine for another version, CPU or device
  out_of_memory,     // a limit on memory was reached
  cancelled,         // the caller or a deadline stopped the run
};

std::string_view name_of(ErrorCode code);

// One refusal. `message` says what was found and what was expected, `hint` what to do, `node` which node of the model
// (may be empty); `trail` is the way to it, innermost first ("in function 'f'", "while reading model.onnx").
struct Error {
  ErrorCode code = ErrorCode::invalid_argument;
  std::string message;
  std::string hint = {};
  std::string node = {};
  std::vector<std::string> trail = {};

  // The whole refusal as one text: "node 'up1': MESSAGE HINT (TRAIL; TRAIL)".
  std::string text() const;
  Error&& at_node(std::string_view node_name) &&;
  Error&& within(std::string step) &&;
};

// Says so and aborts: somebody read the value of a Result that holds an Error, or the Error of one that holds a value.
[[noreturn]] void result_misread();

// A T or the Error that prevented it. Test with ok(); reading the wrong side aborts.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}      // NOLINT(google-explicit-constructor): return sites stay plain
  Result(Error error) : state_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return state_.index() == 0; }
  T& value() & {
    if (!ok()) result_misread();
    return std::get<0>(state_);
  }
  const T& value() const& {
    if (!ok()) result_misread();
    return std::get<0>(state_);
  }
  T&& value() && {
    if (!ok()) result_misread();
    return std::get<0>(std::move(state_));
  }
  Error& error() & {
    if (ok()) result_misread();
    return std::get<1>(state_);
  }
  const Error& error() const& {
    if (ok()) result_misread();
    return std::get<1>(state_);
  }
  Error&& error() && {
    if (ok()) result_misread();
    return std::get<1>(std::move(state_));
  }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return !error_.has_value(); }
  Error& error() & {
    if (ok()) result_misread();
    return *error_;
  }
  const Error& error() const& {
    if (ok()) result_misread();
    return *error_;
  }
  Error&& error() && {
    if (ok()) result_misread();
    return *std::move(error_);
  }

 private:
  std::optional<Error> error_;
};

}  // namespace polyphase
