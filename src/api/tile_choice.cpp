// Chooses tiles: as few as the memory allows, cut where the halos cost least.
#include "api/tile_choice.h"

#include <algorithm>
#include <numeric>

#include "api/machine.h"

namespace polyphase::api {
namespace {

constexpr std::uint64_t most_memory_bytes = std::uint64_t{256} << 20;

// Where a size stands in the inputs: sizes are gone through in this order, the last one fastest.
std::pair<std::size_t, int> place_of(const EngineCut& cut) {
  for (std::size_t i = 0; i < cut.inputs.size(); ++i) {
    if (cut.inputs[i].is_cut()) return {i, cut.inputs[i].axis};
  }
  return {cut.inputs.size(), 0};
}

class Chooser {
 public:
  Chooser(polyphase::Session& session, const TileOptions& options) : session_(session), options_(options) {
    limit_ = options.memory_bytes != 0 ? options.memory_bytes : std::min(most_memory_bytes, memory_bytes() / 8);
  }

  Result<TileChoice> choose(const std::vector<std::vector<std::int64_t>>& input_sizes) {
    TRY_VOID(expect_symbols());
    TRY(out_.bindings, session_.bindings_for(input_sizes));
    TRY_VOID(expect_names());
    TRY_VOID(collect());
    for (std::size_t i = 0; i < out_.sizes.size(); ++i) TRY_VOID(set(i, out_.sizes[i].own));
    TRY_VOID(measure());
    if (!chosen_.empty()) TRY_VOID(fit());
    return std::move(out_);
  }

 private:
  const polyphase::Engine& engine() const { return *session_.program().engine; }

  Result<void> expect_symbols() const {
    if (!engine().cuts.empty()) return {};
    if (!engine().symbols.empty()) {
      return Error{ErrorCode::unsupported, "the engine does not say where its network may be cut into tiles.",
                   "Compile the model again with this version."};
    }
    std::string shapes;
    for (const EnginePort& port : engine().inputs) {
      shapes += (shapes.empty() ? "'" : ", '") + port.name + "' " +
                engine().values[static_cast<std::size_t>(port.value)].type.shape.text();
    }
    return Error{ErrorCode::unsupported, "all sizes of the network are fixed, so it takes no tiles: " + shapes + ".",
                 "Export the model with these axes open (dynamic_axes or dynamic_shapes)."};
  }

  Result<void> expect_names() const {
    for (const auto& asked : options_.own) {
      const bool known = std::any_of(engine().cuts.begin(), engine().cuts.end(),
                                     [&](const EngineCut& cut) { return cut.symbol == asked.first; });
      if (known && asked.second >= 0) continue;
      std::string list;
      for (const EngineCut& cut : engine().cuts) list += (list.empty() ? "" : ", ") + cut.symbol;
      return Error{ErrorCode::invalid_argument,
                   "tiles of " + std::to_string(asked.second) + " are asked for along '" + asked.first + "'.",
                   "Tiles have 0 (not cut) or more places along one of: " + list + "."};
    }
    return {};
  }

  Result<void> collect() {
    const EngineCut* refused = nullptr;
    for (const EngineCut& cut : engine().cuts) {
      TiledSize size{&cut, out_.bindings.find(cut.symbol)->second, 0, {}};
      const auto given = options_.own.find(cut.symbol);
      const std::int64_t own = given == options_.own.end() ? 0 : given->second;
      size.own = own == 0 ? size.whole : std::min(own, size.whole);
      if (size.whole < 2) continue;
      if (!cut.refusal.empty()) {
        if (size.own < size.whole) return refuse_tiles(cut);
        if (given == options_.own.end() && (refused == nullptr || place_of(*refused) < place_of(cut))) refused = &cut;
        continue;
      }
      out_.sizes.push_back(std::move(size));
    }
    std::sort(out_.sizes.begin(), out_.sizes.end(),
              [](const TiledSize& a, const TiledSize& b) { return place_of(*a.cut) < place_of(*b.cut); });
    for (std::size_t i = 0; i < out_.sizes.size(); ++i) {
      if (options_.own.count(out_.sizes[i].cut->symbol) == 0) chosen_.push_back(i);
    }
    // Nothing is left to cut but perhaps images of a batch: say why.
    const bool nothing = std::all_of(out_.sizes.begin(), out_.sizes.end(), [](const TiledSize& size) {
      return size.own == size.whole && place_of(*size.cut).second == 0;
    });
    if (nothing && refused != nullptr && options_.own.empty()) return refuse_tiles(*refused);
    return {};
  }

  Result<void> set(std::size_t i, std::int64_t own) {
    TiledSize& size = out_.sizes[i];
    size.own = std::clamp<std::int64_t>(own, 1, size.whole);
    TRY(size.pieces, pieces_of(engine(), *size.cut, out_.bindings, size.own));
    return {};
  }

  // What the longest pieces take; too much where they cannot be planned for.
  Result<void> measure() {
    DimBindings bindings = out_.bindings;
    bool is_whole = true;
    for (const TiledSize& size : out_.sizes) {
      bindings[size.cut->symbol] = size.longest();
      is_whole = is_whole && size.pieces.size() == 1;
    }
    const auto inputs = port_sizes(engine(), engine().inputs, bindings);
    const auto plan = session_.plan_for(inputs);
    if (!plan.ok()) {
      // A whole that is too large may do in tiles; tiles that the network cannot take never will.
      if (plan.error().code != ErrorCode::out_of_memory) return plan.error();
      out_.memory_bytes = UINT64_MAX;
      return {};
    }
    std::uint64_t bytes =
        (*plan)->arena_bytes + (*plan)->scratch_bytes * static_cast<std::uint64_t>(session_.threads());
    const auto add = [&](const std::vector<EnginePort>& ports, const std::vector<std::vector<std::int64_t>>& sizes) {
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        const DType dtype = engine().values[static_cast<std::size_t>(ports[i].value)].type.dtype;
        bytes += static_cast<std::uint64_t>(
                     std::accumulate(sizes[i].begin(), sizes[i].end(), std::int64_t{1}, std::multiplies<>())) *
                 size_bytes(dtype);
      }
    };
    add(engine().inputs, inputs);
    add(engine().outputs, port_sizes(engine(), engine().outputs, bindings));
    out_.memory_bytes = bytes;
    return {};
  }

  bool fits() const { return out_.memory_bytes <= limit_; }

  double work() const {
    double product = 1;
    for (const TiledSize& size : out_.sizes)
      product *= static_cast<double>(size.total()) / static_cast<double>(size.whole);
    return product;
  }

  Result<void> divide(std::size_t i, std::int64_t tiles) { return set(i, ceil_div(out_.sizes[i].whole, tiles)); }

  // Halves the size whose halos then cost least, until a tile fits; then takes back what was too much.
  Result<void> fit() {
    std::vector<std::int64_t> tiles(out_.sizes.size(), 1);
    while (!fits()) {
      std::optional<std::size_t> best;
      double least = 0;
      for (const std::size_t i : chosen_) {
        const TiledSize before = out_.sizes[i];
        TRY_VOID(divide(i, 2 * tiles[i]));
        const double cost = work();
        const bool shorter = out_.sizes[i].longest() < before.longest();
        out_.sizes[i] = before;
        if (shorter && (!best.has_value() || cost < 0.999 * least)) {
          best = i;
          least = cost;
        }
      }
      if (!best.has_value()) return too_large();
      tiles[*best] *= 2;
      TRY_VOID(divide(*best, tiles[*best]));
      TRY_VOID(measure());
    }
    for (const std::size_t i : chosen_) {
      std::int64_t low = tiles[i] / 2;  // too few, unless it was not divided at all
      std::int64_t high = tiles[i];
      while (high - low > 1) {
        const std::int64_t middle = low + (high - low) / 2;
        TRY_VOID(divide(i, middle));
        TRY_VOID(measure());
        (fits() ? high : low) = middle;
      }
      TRY_VOID(divide(i, high));
    }
    return measure();
  }

  Result<void> too_large() const {
    const bool known = out_.memory_bytes != UINT64_MAX;
    return Error{ErrorCode::out_of_memory,
                 "the smallest tiles of the network need " + (known ? std::to_string(out_.memory_bytes) : "too many") +
                     " bytes; the limit is " + std::to_string(limit_) + ".",
                 "Allow more memory, or cut along a size that was left whole."};
  }

  polyphase::Session& session_;
  const TileOptions& options_;
  std::uint64_t limit_ = 0;
  TileChoice out_;
  std::vector<std::size_t> chosen_;  // of out_.sizes: nobody said how to cut them
};

}  // namespace

std::int64_t TiledSize::longest() const {
  std::int64_t most = 0;
  for (const Piece& piece : pieces) most = std::max(most, piece.length());
  return most;
}

std::int64_t TiledSize::total() const {
  std::int64_t sum = 0;
  for (const Piece& piece : pieces) sum += piece.length();
  return sum;
}

std::vector<std::vector<std::int64_t>> port_sizes(const polyphase::Engine& engine, const std::vector<EnginePort>& ports,
                                                  const DimBindings& bindings) {
  std::vector<std::vector<std::int64_t>> out;
  for (const EnginePort& port : ports) {
    const auto sizes = engine.values[static_cast<std::size_t>(port.value)].type.shape.evaluate(bindings);
    out.push_back(sizes.value_or(std::vector<std::int64_t>()));
  }
  return out;
}

Error refuse_tiles(const EngineCut& cut) {
  return Error{ErrorCode::unsupported,
               "the network cannot be run in tiles along " + cut.symbol + ": " + cut.refusal + ".",
               "Run it on whole inputs, or cut along another size only (a tile size of 0 leaves a size whole)."}
      .at_node(cut.node);
}

Result<TileChoice> choose_tiles(polyphase::Session& session, const std::vector<std::vector<std::int64_t>>& input_sizes,
                                const TileOptions& options) {
  return Chooser(session, options).choose(input_sizes);
}

}  // namespace polyphase::api
