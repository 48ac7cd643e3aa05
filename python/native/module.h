// The parts of the module polyphase._native, and what they share.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string_view.h>

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "native/errors.h"
#include "native/handles.h"
#include "native/interrupt.h"
#include "native/unlocked.h"
#include "polyphase/diagnose.h"

namespace polyphase::python {

void bind_engine(nanobind::module_& module);
void bind_session(nanobind::module_& module);
void bind_compile(nanobind::module_& module);
void bind_diagnose(nanobind::module_& module);
void bind_export(nanobind::module_& module);
void bind_network(nanobind::module_& module);

// Plain data: dicts, lists, str, int, float, bool and None, with the names of the C++ structs' fields.
nanobind::dict plain(const api::EngineInfo& info);
nanobind::dict plain(const api::Report& report);
nanobind::dict plain(const api::CheckReport& report);
nanobind::dict plain(const Error& error);
nanobind::dict plain(const api::Port& port);
nanobind::tuple shape_of(const std::vector<std::string>& sizes);

// Runs on a caller's arrays: `args` by position, then `named` by the inputs' names. Returns the outputs in order.
// `outputs`: memory for all outputs, or empty.
std::vector<nanobind::object> run_arrays(const SessionHandle& session, nanobind::object args, nanobind::dict named,
                                         const std::vector<nanobind::object>& outputs, nanobind::object deadline);
// The same for a caller's positional and named arguments: returns the output, or a tuple of several.
nanobind::object call_session(const SessionHandle& session, nanobind::args args, nanobind::kwargs named);

// Seconds from now, or None.
std::optional<std::chrono::steady_clock::time_point> deadline_of(nanobind::object seconds);
// The same tile by tile (polyphase/tiles.h). `progress` may be None.
std::vector<nanobind::object> run_tiled(const SessionHandle& session, nanobind::object args, nanobind::dict named,
                                        const nanobind::dict& tiles, std::int64_t memory_bytes,
                                        nanobind::object deadline, nanobind::object progress);
nanobind::list tile_axes(const api::Engine& engine);

// The plugins in the files of these paths, a list of bytes; raises what is wrong with one.
std::vector<api::Plugin> plugins_of(const nanobind::list& paths);
// The keyword arguments of polyphase.compile as polyphase._options has made them plain: no strings in place of lists.
api::CompileOptions options_of(const nanobind::dict& given);

// Compiles, and says as warnings of Python's what was wrong with the timing cache.
EngineHandle compile_with(const nanobind::dict& options, nanobind::object progress,
                          const std::function<Result<api::Engine>(const api::CompileOptions&)>& work);

// Works with options that Ctrl-C and an exception of the caller's progress function cancel, without the interpreter's
// lock; raises what stopped it. `progress` may be None.
template <typename Work>
auto work_on_model(api::CompileOptions options, nanobind::object progress, const Work& work) {
  for (;;) {
    Interruption interruption;
    std::exception_ptr thrown;
    options.cancelled = interruption.flag();
    if (!progress.is_none()) {
      options.progress = [&](std::string_view stage, double done) {
        if (interruption.flag()->load()) return;
        const nanobind::gil_scoped_acquire locked;
        try {
          progress(stage, done);
        } catch (...) {  // it goes on to the caller once the compiler has come to an end
          thrown = std::current_exception();
          interruption.stop();
        }
      };
    }
    auto result = [&] {
      const Unlocked unlocked;
      return work(options);
    }();
    if (thrown) std::rethrow_exception(thrown);
    if (!result.ok() && result.error().code == ErrorCode::cancelled && interruption.settle()) continue;
    return value_or_raise(std::move(result));
  }
}

// Refuses what is no number of threads; 0 is one per core.
int checked_threads(std::int64_t threads);
std::shared_ptr<SessionHandle> make_session(const api::Engine& engine, std::int64_t threads,
                                            std::int64_t memory_limit_bytes);

}  // namespace polyphase::python
