// Shape: the sizes of a tensor in the operator's logical order, each a Dim; and the dtype + shape of a value.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "base/dim.h"
#include "base/dtype.h"

namespace polyphase {

// The most axes a tensor may have.
inline constexpr int max_rank = 8;

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<Dim> dims) : dims_(dims) {}
  explicit Shape(std::vector<Dim> dims) : dims_(std::move(dims)) {}
  static Shape from_sizes(const std::vector<std::int64_t>& sizes);

  int rank() const { return static_cast<int>(dims_.size()); }
  const Dim& operator[](int axis) const { return dims_[static_cast<std::size_t>(axis)]; }
  Dim& operator[](int axis) { return dims_[static_cast<std::size_t>(axis)]; }
  const std::vector<Dim>& dims() const { return dims_; }
  std::vector<Dim>::const_iterator begin() const { return dims_.begin(); }
  std::vector<Dim>::const_iterator end() const { return dims_.end(); }
  void push_back(Dim dim) { dims_.push_back(std::move(dim)); }

  bool is_static() const;
  Dim element_count() const;  // product of all sizes; 1 for rank 0
  std::optional<std::vector<std::int64_t>> evaluate(const DimBindings& bindings) const;
  bool operator==(const Shape& other) const = default;
  std::string text() const;  // "[1, 3, 2*H, W]"

 private:
  std::vector<Dim> dims_;
};

// What a value holds: storage dtype and shape.
struct Type {
  DType dtype = DType::f32;
  Shape shape;
  bool operator==(const Type& other) const = default;
  std::string text() const;  // "f32[1, 3, H, W]"
};

}  // namespace polyphase
