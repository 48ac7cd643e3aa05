// Runs a network tile by tile.
#include <algorithm>
#include <cstring>

#include "api/state.h"
#include "api/tile_choice.h"
#include "polyphase/tiles.h"

namespace polyphase::api {
namespace {

using Sizes = std::vector<std::int64_t>;

TilePlan plan_of(const polyphase::Engine& engine, const TileChoice& choice) {
  TilePlan out;
  for (const EngineCut& cut : engine.cuts) out.own[cut.symbol] = choice.bindings.find(cut.symbol)->second;
  for (const TiledSize& size : choice.sizes) {
    const std::int64_t own = ceil_div(size.own, size.cut->step) * size.cut->step;
    out.own[size.cut->symbol] = size.pieces.size() == 1 ? size.whole : own;
    out.tiles *= static_cast<std::int64_t>(size.pieces.size());
    out.work *= static_cast<double>(size.total()) / static_cast<double>(size.whole);
  }
  out.memory_bytes = choice.memory_bytes;
  out.output_sizes = port_sizes(engine, engine.outputs, choice.bindings);
  return out;
}

class TiledRun {
 public:
  TiledRun(const Session& session, const TileChoice& choice, const TileOptions& options)
      : session_(session),
        engine_(*Access::session_of(session).program().engine),
        choice_(choice),
        options_(options),
        at_(choice.sizes.size(), 0) {}

  // `window` gives a view of an input's elements from `first` on.
  template <typename Window>
  Result<void> run(Window&& window, const TileSink& sink) {
    std::int64_t tiles = 1;
    for (const TiledSize& size : choice_.sizes) tiles *= static_cast<std::int64_t>(size.pieces.size());
    RunOptions run_options;
    run_options.cancelled = options_.cancelled;
    run_options.deadline = options_.deadline;
    for (std::int64_t done = 0; done < tiles; ++done, step()) {
      std::vector<TensorView> inputs;
      for (std::size_t i = 0; i < engine_.inputs.size(); ++i) {
        const auto [first, sizes] = input_window(i);
        TRY(TensorView view, window(i, first, sizes));
        inputs.push_back(std::move(view));
      }
      TRY(const std::vector<Tensor> outputs, session_.run(inputs, run_options));
      for (std::size_t i = 0; i < outputs.size(); ++i) TRY_VOID(give(i, outputs[i], sink));
      if (options_.progress) options_.progress(static_cast<double>(done + 1) / static_cast<double>(tiles));
    }
    return {};
  }

 private:
  const Piece& piece(std::size_t size) const { return choice_.sizes[size].pieces[at_[size]]; }

  void step() {
    for (std::size_t i = at_.size(); i-- > 0;) {
      if (++at_[i] < choice_.sizes[i].pieces.size()) return;
      at_[i] = 0;
    }
  }

  std::pair<Sizes, Sizes> input_window(std::size_t port) const {
    const auto& shape = engine_.values[static_cast<std::size_t>(engine_.inputs[port].value)].type.shape;
    Sizes sizes = shape.evaluate(choice_.bindings).value_or(Sizes());
    Sizes first(sizes.size(), 0);
    for (std::size_t i = 0; i < at_.size(); ++i) {
      const CutState& state = choice_.sizes[i].cut->inputs[port];
      if (!state.is_cut()) continue;
      first[static_cast<std::size_t>(state.axis)] = piece(i).begin * state.up;
      sizes[static_cast<std::size_t>(state.axis)] = piece(i).length() * state.up;
    }
    return {std::move(first), std::move(sizes)};
  }

  Result<void> give(std::size_t port, const Tensor& result, const TileSink& sink) const {
    TensorView window = result.view();
    const Sizes strides = dense_strides(window.sizes);
    window.strides = strides;
    Sizes first(window.sizes.size(), 0);
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < at_.size(); ++i) {
      const CutState& state = choice_.sizes[i].cut->outputs[port];
      if (!state.is_cut()) {
        if (at_[i] > 0) return {};  // the same in every tile along this size: it was given with the first
        continue;
      }
      const auto axis = static_cast<std::size_t>(state.axis);
      const Piece::Share& share = piece(i).outputs[port];
      if (share.skip < 0 || share.skip + share.last - share.first > window.sizes[axis]) {
        return Error{ErrorCode::corrupt, "the engine's cuts give other sizes than its network.",
                     "Compile the model again."};
      }
      first[axis] = share.first;
      window.sizes[axis] = share.last - share.first;
      offset += share.skip * strides[axis];
    }
    for (const std::int64_t size : window.sizes) {
      if (size <= 0) return {};
    }
    window.data = static_cast<std::byte*>(window.data) + offset * static_cast<std::int64_t>(size_bytes(window.dtype));
    return sink(port, first, window);
  }

  static Sizes dense_strides(const Sizes& sizes) {
    Sizes strides(sizes.size(), 1);
    for (std::size_t i = sizes.size(); i-- > 1;) strides[i - 1] = strides[i] * sizes[i];
    return strides;
  }

  const Session& session_;
  const polyphase::Engine& engine_;
  const TileChoice& choice_;
  const TileOptions& options_;
  std::vector<std::size_t> at_;  // by size: which piece
};

Result<void> copy_into(const Tensor& whole, std::span<const std::int64_t> first, const TensorView& window) {
  TRY(const polyphase::TensorView all, inner_view(whole.view(), "the output"));
  TRY(const polyphase::TensorView from, inner_view(window, "the tile"));
  polyphase::TensorView to = all;
  std::int64_t offset = 0;
  for (std::size_t axis = 0; axis < first.size(); ++axis) {
    offset += first[axis] * all.strides[axis];
    to.sizes[axis] = from.sizes[axis];
  }
  to.data = all.data + offset * static_cast<std::int64_t>(size_bytes(all.dtype));
  copy_elements(from, to);
  return {};
}

Result<std::vector<Tensor>> run_views(const Session& session, std::span<const TensorView> inputs,
                                      const TileOptions& options) {
  std::vector<Sizes> input_sizes;
  std::vector<polyphase::TensorView> inner;
  for (const TensorView& input : inputs) {
    TRY(const polyphase::TensorView view, inner_view(input, "input " + std::to_string(inner.size())));
    inner.push_back(view);
    input_sizes.push_back(input.sizes);
  }
  TRY(const TileChoice choice, choose_tiles(Access::session_of(session), input_sizes, options));
  const polyphase::Engine& engine = *Access::session_of(session).program().engine;
  std::vector<Tensor> outputs;
  const auto sizes = port_sizes(engine, engine.outputs, choice.bindings);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const DType dtype = engine.values[static_cast<std::size_t>(engine.outputs[i].value)].type.dtype;
    TRY(Tensor output, Tensor::allocate(dtype, sizes[i]));
    outputs.push_back(std::move(output));
  }
  const auto window = [&](std::size_t i, const Sizes& first, const Sizes& window_sizes) -> Result<TensorView> {
    const auto strides = inner[i].stride_span();
    TensorView view{inputs[i].dtype, window_sizes, {strides.begin(), strides.end()}, inputs[i].data};
    std::int64_t offset = 0;
    for (std::size_t axis = 0; axis < first.size(); ++axis) offset += first[axis] * strides[axis];
    view.data = static_cast<std::byte*>(view.data) + offset * static_cast<std::int64_t>(size_bytes(view.dtype));
    return view;
  };
  const auto sink = [&](std::size_t i, std::span<const std::int64_t> first, const TensorView& tile) {
    return copy_into(outputs[i], first, tile);
  };
  TRY_VOID(TiledRun(session, choice, options).run(window, sink));
  return outputs;
}

Result<TilePlan> run_sources(const Session& session, std::span<const TileSource> inputs, const TileSink& sink,
                             const TileOptions& options) {
  std::vector<Sizes> input_sizes;
  for (const TileSource& input : inputs) input_sizes.push_back(input.sizes);
  TRY(const TileChoice choice, choose_tiles(Access::session_of(session), input_sizes, options));
  const polyphase::Engine& engine = *Access::session_of(session).program().engine;
  std::vector<Tensor> buffers(inputs.size());
  std::vector<Sizes> read_at(inputs.size());
  const auto window = [&](std::size_t i, const Sizes& first, const Sizes& sizes) -> Result<TensorView> {
    const bool fits = buffers[i].data() != nullptr && buffers[i].sizes() == sizes;
    if (fits && read_at[i] == first) return buffers[i].view();  // as for the tile before
    const DType dtype = engine.values[static_cast<std::size_t>(engine.inputs[i].value)].type.dtype;
    if (!fits) {
      buffers[i] = Tensor();  // before the next one is there
      TRY(buffers[i], Tensor::allocate(dtype, sizes));
    }
    TRY_VOID(inputs[i].read(first, buffers[i].view()));
    read_at[i] = first;
    return buffers[i].view();
  };
  TRY_VOID(TiledRun(session, choice, options).run(window, sink));
  return plan_of(engine, choice);
}

}  // namespace

std::vector<TileAxis> tile_axes(const Engine& engine) {
  std::vector<TileAxis> out;
  for (const EngineCut& cut : Access::state(engine).engine->cuts) {
    TileAxis axis;
    axis.size = cut.symbol;
    if (!cut.refusal.empty()) axis.refusal = refuse_tiles(cut);
    axis.step = cut.step;
    for (const CutState& output : cut.outputs) {
      if (!output.is_cut()) continue;
      axis.halo_before = std::max(axis.halo_before, ceil_div(output.low * output.down, output.up));
      axis.halo_after = std::max(axis.halo_after, ceil_div(output.high * output.down, output.up));
    }
    out.push_back(std::move(axis));
  }
  return out;
}

Result<TilePlan> plan_tiles(const Session& session, const std::vector<std::vector<std::int64_t>>& input_sizes,
                            const TileOptions& options) {
  return without_throwing([&]() -> Result<TilePlan> {
    TRY(const TileChoice choice, choose_tiles(Access::session_of(session), input_sizes, options));
    return plan_of(*Access::session_of(session).program().engine, choice);
  });
}

Result<std::vector<Tensor>> run_tiled(const Session& session, std::span<const TensorView> inputs,
                                      const TileOptions& options) {
  return without_throwing([&] { return run_views(session, inputs, options); });
}

Result<TilePlan> run_tiled(const Session& session, std::span<const TileSource> inputs, const TileSink& sink,
                           const TileOptions& options) {
  return without_throwing([&] { return run_sources(session, inputs, sink, options); });
}

}  // namespace polyphase::api
