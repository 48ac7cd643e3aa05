// What the C ABI's handles hold, and how results of the C++ API become statuses.
#pragma once

#include <atomic>
#include <exception>
#include <string>
#include <vector>

#include "api/state.h"
#include "polyphase/c_api.h"

struct polyphase_error {
  polyphase_status status = POLYPHASE_INTERNAL;
  std::string message = {};
  std::string hint = {};
  std::string node = {};
  std::string text = {};
};

struct polyphase_engine {
  struct Sizes {
    std::vector<const char*> texts;
  };
  polyphase::api::Engine engine;
  std::vector<Sizes> inputs;
  std::vector<Sizes> outputs;
};

struct polyphase_session {
  polyphase::api::Session session;
};

struct polyphase_cancel {
  std::atomic<bool> requested{false};
};

namespace polyphase::api {

// The status of an Error; where `out` is not null it becomes an object about it, also where there is no memory for one.
polyphase_status report(Error error, polyphase_error** out) noexcept;
polyphase_status report_current_exception(polyphase_error** out) noexcept;

inline Error null_argument(const char* name) {
  return {ErrorCode::invalid_argument, std::string("the argument '") + name + "' is NULL.",
          "Give the address of what it stands for."};
}

// Calls f, which gives a Result<void>. Nothing leaves but a status.
template <typename F>
polyphase_status guarded(polyphase_error** error, F&& f) noexcept {
  if (error != nullptr) *error = nullptr;
  try {
    Result<void> done = f();
    return done.ok() ? POLYPHASE_OK : report(std::move(done).error(), error);
  } catch (...) {
    return report_current_exception(error);
  }
}

// An engine with the texts of its ports.
polyphase_engine* engine_handle(Engine engine);

// The plugins in these files.
Result<std::vector<Plugin>> plugins_of(std::size_t count, const char* const* paths);

// The options, of which the caller knows as much as his struct_size says: the rest is 0.
template <typename Options>
Result<Options> options_of(const Options* given) {
  Options out{};
  if (given == nullptr) return out;
  const std::size_t known = given->struct_size;
  if (known < sizeof(std::size_t)) {
    return Error{ErrorCode::invalid_argument, "the options' struct_size is " + std::to_string(known) + ".",
                 "Set it to sizeof of the struct."};
  }
  const auto* const from = reinterpret_cast<const std::byte*>(given);
  std::copy(from, from + std::min(known, sizeof(Options)), reinterpret_cast<std::byte*>(&out));
  for (std::size_t i = sizeof(Options); i < known; ++i) {
    if (from[i] == std::byte{0}) continue;
    return Error{ErrorCode::invalid_argument, "the options ask for something that this library does not know yet.",
                 "Update the library, or set members that are newer than it to 0."};
  }
  return out;
}

}  // namespace polyphase::api
