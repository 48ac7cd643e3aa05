// A random use of an operator: operands, attributes, symbolic sizes with values for them, mostly legal. run() asks the
// shape rule with symbols and with numbers, computes the reference where it is legal, and blames what does not agree.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ops/registry.h"

namespace polyphase {

class RandomUse {
 public:
  RandomUse(const OpDef& op, std::function<std::uint64_t()> random) : op_(op), random_(std::move(random)) {}

  void prepare() {
    make_operands();
    for (const AttributeSpec& spec : op_.attributes) {
      if (!spec.default_value.has_value() || below(2) == 0) attributes_.set(spec.name, attribute(spec));
    }
  }

  void run() {
    const auto complete = op_.complete(attributes_);
    if (!complete.ok()) return blame("its attributes are refused: " + complete.error().text());
    const auto symbolic = infer(*complete, types_);
    const auto numbers = complete->evaluate(bindings_);
    if (!numbers.has_value()) return;
    std::vector<std::optional<Type>> concrete = types_;
    for (auto& type : concrete) {
      if (!type.has_value()) continue;
      const auto sizes = type->shape.evaluate(bindings_);
      if (!sizes.has_value()) return;
      type->shape = Shape::from_sizes(*sizes);
    }
    const auto found = infer(*numbers, concrete);
    if (found.has_value()) compare(symbolic, *found);
    if (found.has_value() && op_.reference != nullptr) compute(*numbers, concrete, *found);
  }

  // A legal use is refused with another dtype for an operand that OpDef::one_dtype says must agree with another that is
  // there; a float operand of which it does not say so may be another float.
  void change_dtypes() {
    const auto complete = op_.complete(attributes_);
    if (!complete.ok()) return;
    const auto numbers = complete->evaluate(bindings_);
    if (!numbers.has_value() || !infer(*numbers, types_).has_value()) return;
    for (std::size_t i = 0; i < types_.size(); ++i) {
      if (!types_[i].has_value()) continue;
      bool refused = false;
      for (std::size_t j = 0; j < types_.size(); ++j)
        refused = refused || (j != i && types_[j].has_value() && must_agree(i) && must_agree(j));
      const DType own = types_[i]->dtype;
      if (!refused && own != DType::f32) continue;
      std::vector<std::optional<Type>> changed = types_;
      changed[i]->dtype =
          is_float(own) ? (own == DType::f64 ? DType::f32 : DType::f64) : (own == DType::i64 ? DType::i32 : DType::i64);
      dtypes_compared_ = dtypes_compared_ || refused;
      if (infer(*numbers, changed).has_value() == refused)
        blame("operand " + std::to_string(i) + " of another dtype is " + (refused ? "taken" : "refused") +
              ", against one_dtype");
    }
  }
  bool dtypes_compared() const { return dtypes_compared_; }

  bool computed() const { return computed_; }
  const std::string& fault() const { return fault_; }  // empty: all was as it should be
  std::string text() const {
    std::string out = op_.name;
    for (const auto& type : types_) out += " " + (type.has_value() ? type->text() : "none");
    return out + " | " + print_attributes(attributes_);
  }

 private:
  std::uint64_t below(std::uint64_t n) { return random_() % n; }

  bool must_agree(std::size_t i) const { return (op_.one_dtype >> std::min(i, op_.inputs.size() - 1) & 1U) != 0; }

  // Mostly sizes that agree, so that many uses are legal.
  Dim size() {
    switch (below(12)) {
      case 0:
        return 0;
      case 1:
        return 1;
      case 2:
        return symbol("H");
      case 3:
        return symbol("W");
      case 4:
        return symbol("H") * 2;
      default:
        return static_cast<std::int64_t>(common_ + below(2));
    }
  }
  Dim symbol(const std::string& name) {
    bindings_.emplace(name, static_cast<std::int64_t>(below(6)));
    return Dim::symbol(name);
  }

  std::int64_t small_integer() {
    static constexpr std::int64_t extreme[] = {INT64_MAX, INT64_MIN, INT64_MAX / 2, -INT64_MAX, 1 << 30};
    switch (below(12)) {
      case 0:
        return below(4) == 0 ? extreme[below(5)] : -1;
      case 1:
        return 0;
      case 2:
        return static_cast<std::int64_t>(below(7)) - 2;
      default:
        return 1 + static_cast<std::int64_t>(below(2));
    }
  }

  Dim small_dim() {
    switch (below(10)) {
      case 0:
        return size() - 1;
      case 1:
        return floor_div(size() + 1, Dim(2));
      case 2:
      case 3:
        return size();
      default:
        return small_integer();
    }
  }

  // The lists of one use agree, mostly.
  std::size_t list_length() {
    return below(15) == 0 ? below(6) : (spatial_ ? std::max<std::size_t>(rank_, 2) - 2 : rank_);
  }

  template <typename T, typename F>
  Attribute list(F&& make) {
    std::vector<T> out(list_length());
    for (T& item : out) item = make();
    return out;
  }

  Attribute integers(const std::string& name) {
    if (name == "order" && below(5) != 0) {
      std::vector<std::int64_t> order(rank_);
      for (std::size_t i = 0; i < rank_; ++i) order[i] = static_cast<std::int64_t>(i);
      for (std::size_t i = rank_; i > 1; --i) std::swap(order[i - 1], order[below(i)]);
      return order;
    }
    return list<std::int64_t>([&] { return small_integer(); });
  }

  std::string layout() {
    const char* const words[] = {"NCHW", "NHWC", "NCHW4c", "HW2wCN", "CN", "NC", "CN3n", "NCW", "WCN", "NNC", "NC1c"};
    return words[below(std::size(words))];
  }

  Attribute attribute(const AttributeSpec& spec) {
    static constexpr double reals[] = {0, 1, -1, 0.5, 1e-5, 1e300, -INFINITY, NAN, 3, 0.3};
    switch (spec.kind) {
      case AttributeKind::boolean:
        return below(2) == 0;
      case AttributeKind::integer:
        return small_integer();
      case AttributeKind::real:
        return reals[below(10)];
      case AttributeKind::word:
        if (spec.name.ends_with("_layout")) return layout();
        if (spec.words.empty()) return below(4) == 0 ? std::string("word") : std::string("tanh");
        return spec.words[below(spec.words.size())];
      case AttributeKind::dtype:
        return static_cast<DType>(below(dtype_count));
      case AttributeKind::integers:
        return integers(spec.name);
      case AttributeKind::reals:
        return list<double>([&] { return reals[below(10)]; });
      case AttributeKind::dim:
        return small_dim();
      case AttributeKind::dims:
        return list<Dim>([&] { return small_dim(); });
      case AttributeKind::tensor:
        return below(8) == 0 ? Tensor() : Tensor::allocate(DType::f16, std::vector<std::int64_t>{2, 3}).value();
    }
    return false;
  }

  Shape shape(std::size_t rank) {
    Shape out;
    for (std::size_t i = 0; i < rank; ++i) out.push_back(size());
    return out;
  }

  void make_operands() {
    common_ = 1 + below(4);
    spatial_ = op_.layout == LayoutRule::spatial;
    rank_ = below(10) == 0 ? below(9) : (spatial_ ? 3 + below(3) : below(6));
    static constexpr DType usual[] = {DType::f32, DType::f16, DType::i64, DType::boolean,
                                      DType::f64, DType::u8,  DType::i32};
    const DType dtype = below(8) == 0 ? static_cast<DType>(below(dtype_count)) : usual[below(7)];
    const Shape first = shape(rank_);
    for (const OperandSpec& operand : op_.inputs) {
      const std::size_t count = operand.variadic ? 1 + below(3) : 1;
      for (std::size_t i = 0; i < count; ++i) {
        if (operand.optional && below(2) == 0) {
          types_.emplace_back();
          continue;
        }
        Type type{dtype, below(3) == 0 ? shape(below(5)) : first};
        if (below(3) == 0 && first.rank() >= 2) type.shape = Shape{first[1]};  // per channel
        if (operand.name == "indices") type.dtype = below(2) == 0 ? DType::i64 : DType::i32;
        if (operand.name == "rois" && first.rank() > 0)
          type.shape = Shape{first[0], Dim(op_.inputs.size() == 3 ? 4 : 5)};
        if (operand.name == "images" && first.rank() > 0) type = {DType::i64, Shape{first[0]}};
        if (operand.name == "condition" && below(6) != 0) type.dtype = DType::boolean;
        if (below(30) == 0) type.dtype = static_cast<DType>(below(dtype_count));
        types_.emplace_back(type);
      }
    }
    if (op_.name == "lstm" || op_.name == "gru" || op_.name == "rnn") make_recurrence(dtype);
    if (op_.name == "grid_sample" && below(4) != 0) make_grid();
    if (op_.name == "dft" && types_[0]->shape.rank() > 1 && below(4) != 0) {
      std::vector<Dim> sizes = types_[0]->shape.dims();
      sizes.back() = 1 + static_cast<std::int64_t>(below(2));
      types_[0]->shape = Shape(sizes);
    }
    while (!types_.empty() && !types_.back().has_value()) types_.pop_back();
  }

  // The first two operands so that they agree, mostly; the others by chance.
  void make_recurrence(DType dtype) {
    const std::int64_t rows = (op_.name == "lstm" ? 4 : op_.name == "gru" ? 3 : 1) * static_cast<std::int64_t>(common_);
    const std::int64_t directions = 1 + static_cast<std::int64_t>(below(2));
    if (below(2) == 0) types_.resize(2);
    types_[0] = Type{dtype, Shape{size(), size(), directions * rows}};
    types_[1] = Type{dtype, Shape{directions, rows, static_cast<std::int64_t>(common_)}};
  }

  // An image and as many coordinates per place as it has spatial axes.
  void make_grid() {
    const std::size_t spatial = 1 + below(3);
    std::vector<Dim> image{size(), size()};
    std::vector<Dim> grid{image[0]};
    for (std::size_t i = 0; i < spatial; ++i) {
      image.push_back(size());
      grid.push_back(size());
    }
    grid.push_back(static_cast<std::int64_t>(spatial));
    types_[0]->shape = Shape(image);
    types_[1]->shape = Shape(grid);
  }

  std::optional<std::vector<Type>> infer(const Attributes& attributes, const std::vector<std::optional<Type>>& types) {
    std::vector<OperandInfo> infos;
    for (const auto& type : types) infos.push_back({type.has_value() ? &*type : nullptr, nullptr});
    std::vector<DimCheck> checks;
    auto found = infer_types(op_, attributes, infos, checks);
    if (!found.ok()) {
      if (found.error().message.empty()) blame("the refusal says nothing");
      return std::nullopt;
    }
    // Checks that fail with these numbers refuse the use when it runs.
    for (const DimCheck& check : checks) {
      const auto left = check.left.evaluate(bindings_);
      const auto right = check.right.evaluate(bindings_);
      if (!left.has_value() || !right.has_value() || !holds(check.relation, *left, *right)) return std::nullopt;
    }
    return std::move(found).value();
  }

  void compare(const std::optional<std::vector<Type>>& symbolic, const std::vector<Type>& found) {
    if (!symbolic.has_value()) return;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const auto sizes = (*symbolic)[i].shape.evaluate(bindings_);
      if (!sizes.has_value()) continue;  // the expression leaves int64 where the plain numbers do not
      if (Shape::from_sizes(*sizes).text() != found[i].shape.text()) {
        blame("result " + std::to_string(i) + " is " + found[i].text() + ", with symbols " + (*symbolic)[i].text());
      }
    }
  }

  void compute(const Attributes& attributes, const std::vector<std::optional<Type>>& types,
               const std::vector<Type>& found) {
    for (const Type& type : found) {
      const auto count = type.shape.element_count().constant();
      if (!count.has_value() || *count > 20000) return;
    }
    std::vector<Tensor> inputs;
    for (const auto& type : types) {
      inputs.emplace_back();
      if (!type.has_value()) continue;
      const auto sizes = type->shape.evaluate({});
      if (Shape::from_sizes(*sizes).element_count().constant().value_or(1 << 20) > 20000) return;
      inputs.back() = Tensor::allocate(type->dtype, *sizes).value();
      const TensorView& view = inputs.back().view();
      for (std::int64_t i = 0; i < view.element_count(); ++i) {
        store_integer(view.data + static_cast<std::size_t>(i) * size_bytes(view.dtype), view.dtype,
                      static_cast<std::int64_t>(below(5)) - 1);
      }
    }
    const auto results = evaluate_reference(op_, attributes, inputs);
    if (!results.ok()) return;  // an index out of range
    computed_ = true;
    if (results->size() != found.size()) return blame("it gives " + std::to_string(results->size()) + " results");
    for (std::size_t i = 0; i < found.size(); ++i) {
      if ((*results)[i].type().text() != found[i].text()) blame("a result is " + (*results)[i].type().text());
    }
  }

  void blame(const std::string& what) { fault_ += text() + ": " + what + "\n"; }

  const OpDef& op_;
  std::function<std::uint64_t()> random_;
  std::string fault_;
  std::uint64_t common_ = 2;
  std::size_t rank_ = 2;
  bool spatial_ = false;
  std::vector<std::optional<Type>> types_;
  Attributes attributes_;
  DimBindings bindings_;
  bool computed_ = false;
  bool dtypes_compared_ = false;
};

}  // namespace polyphase
