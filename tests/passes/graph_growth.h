// What the generator of random graphs grows with: its values, their bounds, and nodes that the shape rules take.
#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "passes/random_data.h"

namespace polyphase {

using Dims = std::vector<Dim>;
using Integers = std::vector<std::int64_t>;

class GraphGrowth {
 protected:
  GraphGrowth(const Registry& registry, std::uint64_t seed) : random_(seed), graph_(std::make_unique<Graph>(registry)) {
    exact_ = pick(3) != 0;
    dtype_ = pick(2) == 0 ? DType::f32 : DType::f64;
    limit_ = dtype_ == DType::f32 ? 1 << 16 : 1e10;
    if (exact_ && pick(6) == 0) {
      dtype_ = DType::f16;
      limit_ = 1 << 10;
      fraction_ = 2;
    }
  }

  std::int64_t pick(std::int64_t count) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(count));
  }
  std::int64_t between(std::int64_t low, std::int64_t high) { return low + pick(high - low + 1); }
  Value* any() { return values_[static_cast<std::size_t>(pick(static_cast<std::int64_t>(values_.size())))]; }
  // The newest values are the likeliest, so that chains grow.
  Value* recent() { return pick(3) == 0 ? any() : values_.back(); }

  Dims input_shape(int rank) {
    const bool symbolic = pick(2) == 0;
    Dims shape{symbolic ? Dim::symbol("N", {1, 2}) : Dim(between(1, 2)), between(1, 4)};
    const char* names[] = {"D", "H", "W"};
    for (int i = 2; i < rank; ++i)
      shape.push_back(symbolic && pick(4) != 0 ? Dim::symbol(names[i - 2], {3, 7}) : Dim(between(3, 6)));
    return shape;
  }

  void remember(Value* value, double bound) {
    bound_[value] = bound;
    values_.push_back(value);
  }

  // Adds a node; null where the rules refuse it. Values near the limit are clipped before they grow further.
  Value* add(const char* op, Attributes attributes, std::vector<Value*> inputs, double bound) {
    if (bound > limit_ || std::isnan(bound)) return nullptr;
    auto node = graph_->add(op, std::move(attributes), std::move(inputs), "v");
    if (!node.ok()) return nullptr;
    Value* result = (*node)->output();
    const auto largest = result->type.shape.element_count().range().high;
    if (result->type.shape.rank() > 5 || largest > 60000 || result->type.shape.element_count().range().low < 1) {
      graph_->erase(*node);
      return nullptr;
    }
    bound_[result] = bound;
    return result;
  }

  void keep(Value* value) {
    if (value == nullptr) return;
    if (bound_.at(value) > limit_ / 64) {
      values_.push_back(value);
      value = add("clip", Attributes({{"low", -4.0}, {"high", 4.0}}), {value}, 4);
    }
    if (value != nullptr) values_.push_back(value);
  }

  Value* constant(const std::vector<std::int64_t>& sizes, std::int64_t low, std::int64_t high) {
    std::int64_t count = 1;
    for (const std::int64_t size : sizes) count *= size;
    std::vector<double> elements;
    for (std::int64_t i = 0; i < count; ++i) elements.push_back(static_cast<double>(between(low, high)));
    return add("constant", Attributes({{"value", Tensor::from_values(dtype_, sizes, elements)}}), {},
               static_cast<double>(std::max(-low, high)));
  }

  // Weights that connect each channel with itself alone.
  Value* diagonal(const std::vector<std::int64_t>& sizes) {
    const Tensor tensor = Tensor::allocate(dtype_, sizes).value();
    const std::int64_t taps = tensor.view().element_count() / (sizes[0] * sizes[1]);
    for (std::int64_t c = 0; c < sizes[0]; ++c) {
      for (std::int64_t t = 0; t < taps; ++t) {
        const auto at = static_cast<std::size_t>((c * sizes[1] + c) * taps + t);
        store_double(tensor.view().data + at * size_bytes(dtype_), dtype_, static_cast<double>(between(-2, 2)));
      }
    }
    return add("constant", Attributes({{"value", tensor}}), {}, 2);
  }

  static bool is_image(const Value* value) {
    const Shape& shape = value->type.shape;
    return shape.rank() >= 3 && shape.rank() <= 5 && shape[1].is_constant() && shape[1].value() > 0 &&
           shape[1].value() <= 16;
  }

  Random random_;
  std::unique_ptr<Graph> graph_;
  bool exact_ = true;
  DType dtype_ = DType::f32;
  double limit_ = 0;       // beyond this, sums of products may round
  double fraction_ = 0.5;  // of what is scaled down; f16 has no digits to spare for it
  std::vector<Value*> values_;
  std::unordered_map<const Value*, double> bound_;
};

}  // namespace polyphase
