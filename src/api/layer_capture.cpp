// What a run shows, and how two tensors differ.
#include <chrono>
#include <cmath>
#include <cstring>

#include "api/layers.h"
#include "api/state.h"
#include "runtime/arena.h"

namespace polyphase::api {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// For each block the place in front of its values: "", "NODE/0:", …
std::vector<Place> prefixes_of(const polyphase::Engine& engine) {
  std::vector<Place> out(engine.blocks.size());
  const auto name = [&](const auto& self, std::size_t block) -> void {
    for (const Step& step : engine.blocks[block].steps) {
      for (std::size_t i = 0; i < step.blocks.size(); ++i) {
        const auto inner = static_cast<std::size_t>(step.blocks[i]);
        out[inner] = out[block] + step.name + "/" + std::to_string(i) + ":";
        self(self, inner);
      }
    }
  };
  name(name, 0);
  return out;
}

// Copies of tensors in large pieces of memory, because fresh pages cost more than what is written to them. What lies
// without gaps keeps its strides and is copied as bytes.
class Copies {
 public:
  Result<polyphase::Tensor> copy(const polyphase::TensorView& from) {
    TensorDesc desc = TensorDesc::row_major(from.dtype, from.size_span());
    const bool dense = from.extent() == from.element_count();
    if (dense) desc.strides = from.strides;
    const auto bytes = static_cast<std::size_t>(desc.element_count()) * size_bytes(from.dtype);
    TRY(std::byte* const memory, take(bytes));
    const polyphase::TensorView to(desc, memory);
    if (!dense) {
      copy_elements(from, to);
    } else if (bytes != 0) {
      std::memcpy(memory, from.data, bytes);
    }
    return polyphase::Tensor(Buffer::borrow(pieces_[at_].memory, memory, bytes), to);
  }

  // The memory is used again from its start; what was copied before is gone.
  void rewind() { at_ = used_ = 0; }

 private:
  static constexpr std::size_t least_bytes = std::size_t{64} << 20;

  struct Piece {
    std::shared_ptr<std::byte> memory;
    std::size_t size_bytes = 0;
  };

  Result<std::byte*> take(std::size_t bytes) {
    const std::size_t rounded = (std::max<std::size_t>(bytes, 1) + 63) / 64 * 64;
    while (at_ < pieces_.size() && used_ + rounded > pieces_[at_].size_bytes) {
      ++at_;
      used_ = 0;
    }
    if (at_ == pieces_.size()) {
      Piece piece;
      piece.size_bytes = std::max(rounded, least_bytes);
      TRY(piece.memory, allocate_bytes(piece.size_bytes, "the copies of a run's tensors"));
      pieces_.push_back(std::move(piece));
    }
    std::byte* const memory = pieces_[at_].memory.get() + used_;
    used_ += rounded;
    return memory;
  }

  std::vector<Piece> pieces_;
  std::size_t at_ = 0;  // the piece in use
  std::size_t used_ = 0;
};

// Keeps all that a run shows.
class Keeper final : public RunObserver {
 public:
  Keeper(const polyphase::Engine& engine, Captures& captures)
      : engine_(engine), captures_(captures), prefixes_(prefixes_of(engine)), steps_(steps_in_order(engine)) {}

  Result<void> see(int value, const polyphase::TensorView& view, int step, const Row* row) override {
    return keep(engine_.values[static_cast<std::size_t>(value)].name, view, step, row == nullptr ? "" : row->name);
  }

  Result<void> see_part(int step, std::size_t part, const polyphase::TensorView& view, const Row& row) override {
    return keep(steps_[static_cast<std::size_t>(step)].first->parts[part].yields, view, step, row.name);
  }

  // Outputs put together of windows are read by no step.
  Result<void> keep_outputs(const std::vector<polyphase::Tensor>& outputs) {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const std::string& name = engine_.values[static_cast<std::size_t>(engine_.outputs[i].value)].name;
      if (captures_.count(name) != 0) continue;
      TRY(captures_[name].tensor, copies_.copy(outputs[i].view()));
      captures_[name].step = static_cast<int>(steps_.size()) - 1;
    }
    return {};
  }

  void forget() {
    captures_.clear();
    copies_.rewind();
  }

 private:
  Result<void> keep(const std::string& name, const polyphase::TensorView& view, int step, std::string_view row) {
    TRY(const polyphase::Tensor copy, copies_.copy(view));
    const auto block = static_cast<std::size_t>(steps_[static_cast<std::size_t>(step)].second);
    captures_[prefixes_[block] + name] = {copy, step, std::string(row)};
    return {};
  }

  const polyphase::Engine& engine_;
  Captures& captures_;
  std::vector<Place> prefixes_;  // by block
  std::vector<std::pair<const Step*, int>> steps_;
  Copies copies_;
};

// Sums over all elements; N counts what is not finite on one side and not the same on the other.
struct Sums {
  double squares = 0;
  double expected_squares = 0;
  double largest = 0;
  std::int64_t odd = 0;
  LayerResult& result;

  void add(double found, double expected) {
    if (std::isfinite(found) && std::isfinite(expected)) {
      const double difference = std::abs(found - expected);
      squares += difference * difference;
      expected_squares += expected * expected;
      largest = std::max(largest, difference);
      return;
    }
    result.found_nan += std::isnan(found) ? 1 : 0;
    result.found_infinite += std::isinf(found) ? 1 : 0;
    result.expected_nan += std::isnan(expected) ? 1 : 0;
    result.expected_infinite += std::isinf(expected) ? 1 : 0;
    odd += (std::isnan(found) && std::isnan(expected)) || found == expected ? 0 : 1;
  }
};

void add_all(const polyphase::TensorView& found, const polyphase::TensorView& expected, Sums& sums) {
  if (found.dtype == DType::f32 && expected.dtype == DType::f32 && found.is_row_major() && expected.is_row_major()) {
    const std::int64_t count = found.element_count();
    for (std::int64_t i = 0; i < count; ++i)
      sums.add(static_cast<double>(found.as<float>()[i]), static_cast<double>(expected.as<float>()[i]));
    return;
  }
  const auto element = [](const polyphase::TensorView& view, std::int64_t at) {
    return load_double(view.data + at * static_cast<std::int64_t>(size_bytes(view.dtype)), view.dtype);
  };
  for_each_index<2>(
      found.size_span(), {found.strides.data(), expected.strides.data()},
      [&](const std::array<std::int64_t, 2>& at) { sums.add(element(found, at[0]), element(expected, at[1])); });
}

std::string type_text(const polyphase::TensorView& view) {
  std::string out(name_of(view.dtype));
  for (int axis = 0; axis < view.rank; ++axis)
    out += (axis == 0 ? " " : "x") + std::to_string(view.sizes[static_cast<std::size_t>(axis)]);
  return out;
}

}  // namespace

Result<CapturedRun> capture_run(const Engine& engine, std::span<const TensorView> inputs, const LayerOptions& options) {
  CapturedRun out;
  TRY(const auto showing, make_session(engine, options.session, true));
  RunRequest request;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    TRY(request.inputs.emplace_back(), inner_view(inputs[i], "input " + std::to_string(i)));
  }
  if (options.measure) {
    TRY(const auto plain, make_session(engine, options.session, false));
    TRY_VOID(plain->run(request));  // plans
    const auto start = std::chrono::steady_clock::now();
    TRY_VOID(plain->run(request));
    out.run_seconds = seconds_since(start);
  }
  Keeper keeper(*Access::state(engine).engine, out.captures);
  request.observer = &keeper;
  if (options.measure) {  // in memory that has been touched, as the run before it was
    TRY_VOID(showing->run(request));
    keeper.forget();
  }
  const auto start = std::chrono::steady_clock::now();
  TRY(const std::vector<polyphase::Tensor> outputs, showing->run(request));
  out.capture_seconds = seconds_since(start);
  TRY_VOID(keeper.keep_outputs(outputs));
  return out;
}

void compare_values(const polyphase::TensorView& found, const polyphase::TensorView& expected, double tolerance,
                    LayerResult& result) {
  result.compared = true;
  const bool comparable = is_float(found.dtype) && is_float(expected.dtype);
  const auto a = found.size_span();
  const auto b = expected.size_span();
  if ((found.dtype != expected.dtype && !comparable) || !std::equal(a.begin(), a.end(), b.begin(), b.end())) {
    result.mismatch = "the run gives " + type_text(found) + ", the reference has " + type_text(expected);
    result.past_tolerance = true;
    return;
  }
  Sums sums{.result = result};
  add_all(found, expected, sums);
  result.largest_absolute = sums.largest;
  const double scale = std::sqrt(sums.expected_squares);
  const double error = std::sqrt(sums.squares);
  result.relative_rms = error == 0 ? 0 : scale > 0 ? error / scale : INFINITY;
  result.past_tolerance = sums.odd > 0 || (is_float(found.dtype) ? result.relative_rms > tolerance : sums.largest > 0);
}

}  // namespace polyphase::api
