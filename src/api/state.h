// What the public handles hold, and how our own files reach into them.
#pragma once

#include <memory>
#include <new>

#include "engine/engine.h"
#include "kernel/catalogue.h"
#include "kernel/row_times.h"
#include "kernel/target.h"
#include "ops/registry.h"
#include "polyphase/polyphase.h"
#include "runtime/session.h"

namespace polyphase {
class SpareMemory;
}

namespace polyphase::api {

// The operators and the kernels of one compilation; engines keep it alive because their parts point into it.
class Workshop {
 public:
  explicit Workshop(Registry registry);
  const Registry& registry() const { return registry_; }
  // The kernels of a cluster; of the best one that runs here.
  Target target(Cluster cluster, bool portable) const;
  Target native_target() const;

 private:
  Registry registry_;
  std::map<Cluster, Catalogue> catalogues_;
};
std::shared_ptr<const Workshop> built_in_workshop();
// With the plugins' operators beside ours. Errors: invalid_argument (two of one name, or with one claim).
Result<std::shared_ptr<const Workshop>> workshop_of(const std::vector<Plugin>& plugins);

struct Engine::State {
  std::shared_ptr<const Workshop> workshop;
  std::shared_ptr<const polyphase::Engine> engine;
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  std::shared_ptr<SpareMemory> spare = nullptr;  // of those that refit makes of it
  std::shared_ptr<RowTimes> times = nullptr;     // that chose its kernels; they measure no more
};

struct Session::State {
  Engine engine;
  std::unique_ptr<polyphase::Session> session;
};

struct Access {
  static Engine engine(std::shared_ptr<const Workshop> workshop, polyphase::Engine compiled,
                       std::shared_ptr<RowTimes> times = nullptr);
  static const Engine::State& state(const Engine& engine) {
    CHECK(engine.state_ != nullptr, "an Engine that nobody compiled or loaded");
    return *engine.state_;
  }
  static Session session(std::shared_ptr<const Session::State> state);
  static polyphase::Session& session_of(const Session& session) {
    CHECK(session.state_ != nullptr, "a Session that nobody created");
    return *session.state_->session;
  }
  static const PluginLibrary* library(const Plugin& plugin) { return plugin.library_.get(); }
  static Tensor tensor(const polyphase::Tensor& from);
  static Tensor tensor(TensorView view, std::shared_ptr<void> owner);
  static const std::shared_ptr<void>& owner(const Tensor& tensor) { return tensor.owner_; }
};

// The session that runs an engine. `show_parts`: its observers see what the parts of fused steps yield. Errors: as
// Session::create.
Result<std::unique_ptr<polyphase::Session>> make_session(const Engine& engine, const SessionOptions& options,
                                                         bool show_parts);

// The given memory as a tensor view. Errors: invalid_argument, about `what`.
Result<polyphase::TensorView> inner_view(const TensorView& given, const Subject& what);

// Refuses memory in which one element would be written over another. Error: invalid_argument.
Result<void> expect_writable(const polyphase::TensorView& view, const Subject& what);

// The steps of all blocks in the order in which a session numbers them, each with its block.
std::vector<std::pair<const Step*, int>> steps_in_order(const polyphase::Engine& engine);

std::vector<std::string> sizes_text(const Shape& shape);

// Says so in full where there is memory for the words, otherwise in words that fit into the strings themselves.
Error no_more_memory();

// Calls f; memory that the system refuses on the way becomes an Error.
template <typename F>
auto without_throwing(F&& f) -> decltype(f()) {
  try {
    return f();
  } catch (const std::bad_alloc&) {
    return no_more_memory();
  }
}

}  // namespace polyphase::api
