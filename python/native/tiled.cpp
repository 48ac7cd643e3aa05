// Session.run_tiled.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "native/arrays.h"
#include "native/module.h"
#include "polyphase/tiles.h"

namespace nb = nanobind;

namespace polyphase::python {

nb::list tile_axes(const api::Engine& engine) {
  nb::list out;
  for (const api::TileAxis& axis : api::tile_axes(engine)) {
    nb::dict item;
    item["size"] = axis.size;
    item["refusal"] = axis.refusal.has_value() ? nb::object(plain(*axis.refusal)) : nb::none();
    item["step"] = axis.step;
    item["halo_before"] = axis.halo_before;
    item["halo_after"] = axis.halo_after;
    out.append(item);
  }
  return out;
}

std::vector<nb::object> run_tiled(const SessionHandle& session, nb::object args, nb::dict named, const nb::dict& tiles,
                                  std::int64_t memory_bytes, nb::object deadline, nb::object progress) {
  const api::Session& runs = session.get();
  api::TileOptions options;
  options.deadline = deadline_of(std::move(deadline));
  if (memory_bytes < 0)
    refuse("memory_bytes is " + std::to_string(memory_bytes) + ".", "Give bytes, or 0 for the library's choice.");
  options.memory_bytes = static_cast<std::uint64_t>(memory_bytes);
  for (const auto& [key, value] : tiles) {
    std::string name;
    std::int64_t own = 0;
    if (!nb::try_cast(key, name, false) || !nb::try_cast(value, own))
      refuse("tiles is no dict of sizes.", "Give the name of a size and its places in a tile, as in {'H': 512}.");
    options.own[name] = own;
  }
  const std::vector<GivenArray> inputs = gather(runs.engine().inputs(), std::move(args), std::move(named));
  std::vector<api::TensorView> views;
  bool as_torch = false;
  for (const GivenArray& input : inputs) {
    views.push_back(input.view);
    as_torch = as_torch || input.is_torch;
  }
  for (;;) {
    Interruption interruption;
    std::exception_ptr thrown;
    options.cancelled = interruption.flag();
    if (!progress.is_none()) {
      options.progress = [&](double done) {
        if (interruption.flag()->load()) return;
        const nb::gil_scoped_acquire locked;
        try {
          progress(done);
        } catch (...) {  // it goes on to the caller once the run has come to an end
          thrown = std::current_exception();
          interruption.stop();
        }
      };
    }
    auto results = [&] {
      const Unlocked unlocked;
      return api::run_tiled(runs, views, options);
    }();
    if (thrown) std::rethrow_exception(thrown);
    if (!results.ok() && results.error().code == ErrorCode::cancelled && interruption.settle()) continue;
    std::vector<nb::object> out;
    for (const api::Tensor& tensor : value_or_raise(std::move(results))) out.push_back(give_array(tensor, as_torch));
    return out;
  }
}

}  // namespace polyphase::python
