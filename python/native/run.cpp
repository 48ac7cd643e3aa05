// A run on a caller's arrays.
#include <nanobind/stl/string.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "native/arrays.h"
#include "native/module.h"

namespace nb = nanobind;

namespace polyphase::python {
namespace {

std::string names_of(const std::vector<api::Port>& ports) {
  std::string out;
  for (const api::Port& port : ports) out += (out.empty() ? "'" : ", '") + port.name + "'";
  return out.empty() ? "none" : out;
}

}  // namespace

std::size_t port_of(const std::vector<api::Port>& ports, nb::handle key, const std::string& word) {
  if (std::string text; !nb::try_cast(key, text, false))
    refuse("the " + word + "s have a key that is no name.", "Names are: " + names_of(ports) + ".");
  const auto name = nb::cast<std::string>(key);
  const auto found = std::find_if(ports.begin(), ports.end(), [&](const api::Port& port) { return port.name == name; });
  if (found == ports.end())
    refuse("there is no " + word + " '" + name + "'.", "The " + word + "s are: " + names_of(ports) + ".");
  return static_cast<std::size_t>(found - ports.begin());
}

namespace {

bool is_container(nb::handle given) {
  return PyList_Check(given.ptr()) != 0 || PyTuple_Check(given.ptr()) != 0 || PyDict_Check(given.ptr()) != 0;
}

// Lists and dicts of arrays, as a module's forward takes them, become arrays by input name.
void flatten(const std::vector<api::Port>& ports, nb::object& args, nb::dict& named) {
  bool nested = false;
  for (const nb::handle given : args) nested = nested || is_container(given);
  for (const auto& [key, given] : named) nested = nested || is_container(given);
  if (!nested) return;
  nb::list names;
  for (const api::Port& port : ports) names.append(nb::str(port.name.data(), port.name.size()));
  named = nb::cast<nb::dict>(nb::module_::import_("polyphase._arrays").attr("flatten")(names, args, named));
  args = nb::make_tuple();
}

}  // namespace

std::vector<GivenArray> gather(const std::vector<api::Port>& ports, nb::object args, nb::dict named) {
  flatten(ports, args, named);
  const std::size_t count = nb::len(args);
  if (count > ports.size()) {
    refuse("the engine takes " + std::to_string(ports.size()) + " inputs, found " + std::to_string(count) + ".",
           "Its inputs are: " + names_of(ports) + ".");
  }
  std::vector<nb::object> ordered(ports.size());
  for (std::size_t i = 0; i < count; ++i) ordered[i] = args[i];
  for (const auto& [key, value] : named) {
    const std::size_t at = port_of(ports, key, "input");
    if (ordered[at].is_valid()) refuse("input '" + ports[at].name + "' is given twice.", "Give each input once.");
    ordered[at] = nb::borrow(value);
  }
  std::vector<GivenArray> out;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const std::string what = "input '" + ports[i].name + "'";
    if (!ordered[i].is_valid()) refuse(what + " is missing.", "Give every input: " + names_of(ports) + ".");
    out.push_back(take_array(ordered[i], what, ports[i].dtype, false));
  }
  return out;
}

std::optional<std::chrono::steady_clock::time_point> deadline_of(nb::object seconds) {
  if (seconds.is_none()) return std::nullopt;
  double value = 0;
  if (!nb::try_cast(seconds, value) || std::isnan(value))
    refuse("the deadline is no number.", "Give seconds from now, or None.");
  constexpr double longest = 1e8;  // three years
  if (value > longest) return std::nullopt;
  const std::chrono::duration<double> wait(std::max(0.0, value));
  return std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(wait);
}

namespace {

std::vector<api::TensorView> views_of(const std::vector<GivenArray>& arrays) {
  std::vector<api::TensorView> out;
  for (const GivenArray& array : arrays) out.push_back(array.view);
  return out;
}

// Calls work(options) without the interpreter's lock until Ctrl-C did not stop it.
template <typename Work>
auto run_interruptibly(const SessionHandle& session, const std::vector<api::TensorView>& inputs,
                       api::RunOptions options, const Work& work) {
  const auto unlocked_work = [&] {
    const Unlocked unlocked;
    return work(options);
  };
  if (session.brief_runs.hold(inputs)) {
    auto result = unlocked_work();
    if (!result.ok()) raise(result.error());
    return result;
  }
  for (;;) {
    Interruption interruption;
    options.cancelled = interruption.flag();
    const auto start = std::chrono::steady_clock::now();
    auto result = unlocked_work();
    if (result.ok()) {
      session.brief_runs.note(session.get().engine(), inputs, std::chrono::steady_clock::now() - start);
      return result;
    }
    if (result.error().code != ErrorCode::cancelled || !interruption.settle()) raise(result.error());
  }
}

}  // namespace

bool BriefRuns::hold(const std::vector<api::TensorView>& inputs) const {
  return !sizes_.empty() &&
         std::equal(inputs.begin(), inputs.end(), sizes_.begin(), sizes_.end(),
                    [](const api::TensorView& input, const auto& sizes) { return input.sizes == sizes; });
}

void BriefRuns::note(const api::Engine& engine, const std::vector<api::TensorView>& inputs,
                     std::chrono::steady_clock::duration took) {
  if (took >= std::chrono::milliseconds(1)) return;
  if (!depends_on_sizes_alone_.has_value()) {
    const auto steps = engine.info().steps;
    depends_on_sizes_alone_ =
        std::all_of(steps.begin(), steps.end(), [](const api::StepInfo& step) { return step.block == 0; }) &&
        std::all_of(inputs.begin(), inputs.end(), [](const api::TensorView& input) { return is_float(input.dtype); });
  }
  if (!*depends_on_sizes_alone_) return;
  sizes_.clear();
  for (const api::TensorView& input : inputs) sizes_.push_back(input.sizes);
}

std::vector<nb::object> run_arrays(const SessionHandle& session, nb::object args, nb::dict named,
                                   const std::vector<nb::object>& outputs, nb::object deadline) {
  const api::Session& runs = session.get();
  const std::vector<api::Port>& ports = runs.engine().outputs();
  api::RunOptions options;
  options.deadline = deadline_of(std::move(deadline));
  const std::vector<GivenArray> inputs = gather(runs.engine().inputs(), std::move(args), std::move(named));
  const std::vector<api::TensorView> input_views = views_of(inputs);
  if (!outputs.empty()) {
    std::vector<GivenArray> memory;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const std::string what = "the memory given for output '" + ports[i].name + "'";
      memory.push_back(take_array(outputs[i], what, ports[i].dtype, true));
    }
    expect_apart(inputs, memory);
    const std::vector<api::TensorView> output_views = views_of(memory);
    static_cast<void>(run_interruptibly(session, input_views, options, [&](const api::RunOptions& with) {
      return runs.run_into(input_views, output_views, with);
    }));
    return outputs;
  }
  const auto results = run_interruptibly(session, input_views, options,
                                         [&](const api::RunOptions& with) { return runs.run(input_views, with); });
  bool as_torch = false;
  for (const GivenArray& input : inputs) as_torch = as_torch || input.is_torch;
  std::vector<nb::object> out;
  for (const api::Tensor& tensor : *results) out.push_back(give_array(tensor, as_torch));
  return out;
}

nb::object call_session(const SessionHandle& session, nb::args args, nb::kwargs named) {
  std::vector<nb::object> outputs = run_arrays(session, std::move(args), std::move(named), {}, nb::none());
  if (outputs.size() == 1) return outputs.front();
  nb::list out;
  for (const nb::object& output : outputs) out.append(output);
  return nb::tuple(out);
}

int checked_threads(std::int64_t threads) {
  constexpr std::int64_t most_threads = 1024;
  if (threads < 0 || threads > most_threads)
    refuse("threads is " + std::to_string(threads) + "; expected 0 to " + std::to_string(most_threads) + ".",
           "0 is one per core.");
  return static_cast<int>(threads);
}

std::shared_ptr<SessionHandle> make_session(const api::Engine& engine, std::int64_t threads,
                                            std::int64_t memory_limit_bytes) {
  if (memory_limit_bytes < 0)
    refuse("memory_limit_bytes is " + std::to_string(memory_limit_bytes) + ".",
           "Give bytes, or 0 for half of the memory.");
  const api::SessionOptions options{checked_threads(threads), static_cast<std::uint64_t>(memory_limit_bytes)};
  auto made = [&] {
    const Unlocked unlocked;
    return api::Session::create(engine, options);
  }();
  return std::make_shared<SessionHandle>(value_or_raise(std::move(made)));
}

}  // namespace polyphase::python
