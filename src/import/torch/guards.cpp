// A reader of Python's arithmetic and comparisons, as far as guards use them.
#include "import/torch/guards.h"

#include <algorithm>
#include <string>

namespace polyphase {
namespace {

constexpr int max_depth = 60;

class GuardReader {
 public:
  GuardReader(std::string_view text, const InputSize& size) : text_(text), size_(size) {}

  std::optional<std::vector<SymbolicRelation>> read() {
    std::vector<SymbolicRelation> out;
    do {
      if (!comparison(out)) return std::nullopt;
    } while (take_word("and"));
    skip();
    if (at_ != text_.size()) return std::nullopt;
    return out;
  }

 private:
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(std::string_view token) {
    skip();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  bool take_word(std::string_view word) {
    const std::size_t before = at_;
    if (take(word) && (at_ == text_.size() || text_[at_] == ' ' || text_[at_] == '(')) return true;
    at_ = before;
    return false;
  }
  std::optional<std::int64_t> number() {
    skip();
    std::int64_t value = 0;
    const std::size_t begin = at_;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, text_[at_] - '0', &value))
        return std::nullopt;
    }
    if (at_ == begin) return std::nullopt;
    return value;
  }

  bool comparison(std::vector<SymbolicRelation>& out) {
    using Relation = DimCheck::Relation;
    auto left = sum(0);
    bool compared = false;
    while (left.has_value()) {
      const bool less_equal = take("<=");
      const bool greater_equal = !less_equal && take(">=");
      const bool equal = !less_equal && !greater_equal && take("==");
      const bool different = !less_equal && !greater_equal && !equal && take("!=");
      const bool less = !less_equal && !greater_equal && !equal && !different && take("<");
      const bool greater = !less_equal && !greater_equal && !equal && !different && !less && take(">");
      if (!less_equal && !greater_equal && !equal && !different && !less && !greater) return compared;
      const auto right = sum(0);
      if (!right.has_value()) return false;
      if (less_equal) out.push_back({*left, Relation::less_equal, *right});
      if (greater_equal) out.push_back({*right, Relation::less_equal, *left});
      if (equal) out.push_back({*left, Relation::equal, *right});
      if (less) out.push_back({*left + 1, Relation::less_equal, *right});
      if (greater) out.push_back({*right + 1, Relation::less_equal, *left});
      left = right;
      compared = true;
    }
    return false;
  }

  std::optional<Dim> sum(int depth) {
    auto total = product(depth);
    while (total.has_value()) {
      const bool plus = take("+");
      if (!plus && !take("-")) return total;
      const auto more = product(depth);
      if (!more.has_value()) return std::nullopt;
      total = plus ? *total + *more : *total - *more;
    }
    return std::nullopt;
  }

  std::optional<Dim> product(int depth) {
    auto total = factor(depth);
    while (total.has_value()) {
      const bool whole = take("//");
      const bool rest = !whole && take("%");
      if (!whole && !rest && (text_.substr(std::min(at_, text_.size()), 2) == "**" || !take("*"))) return total;
      const auto more = factor(depth);
      if (!more.has_value()) return std::nullopt;
      total = whole ? floor_div(*total, *more) : rest ? floor_mod(*total, *more) : *total * *more;
    }
    return std::nullopt;
  }

  std::optional<Dim> factor(int depth) {
    if (depth > max_depth) return std::nullopt;
    if (take("-")) {
      const auto value = factor(depth + 1);
      return value.has_value() ? std::optional(-*value) : std::nullopt;
    }
    if (take("(")) {
      auto value = sum(depth + 1);
      return take(")") ? value : std::nullopt;
    }
    for (const bool largest : {true, false}) {
      if (!take(largest ? "Max(" : "Min(") && !take(largest ? "max(" : "min(")) continue;
      auto value = sum(depth + 1);
      while (value.has_value() && take(",")) {
        const auto more = sum(depth + 1);
        if (!more.has_value()) return std::nullopt;
        value = largest ? max(*value, *more) : min(*value, *more);
      }
      return take(")") ? value : std::nullopt;
    }
    if (take("L[")) return input_size();
    const auto value = number();
    return value.has_value() ? std::optional(Dim(*value)) : std::nullopt;
  }

  // Behind "L[": 'x']['low'][0].size()[2]
  std::optional<Dim> input_size() {
    std::string path;
    do {
      if (take("'")) {
        const std::size_t end = text_.find('\'', at_);
        if (end == std::string_view::npos) return std::nullopt;
        path += (path.empty() ? "" : ".") + std::string(text_.substr(at_, end - at_));
        at_ = end + 1;
      } else {
        const auto index = number();
        if (!index.has_value()) return std::nullopt;
        path += "." + std::to_string(*index);
      }
      if (!take("]")) return std::nullopt;
    } while (take("["));
    if (!take(".size()[") && !take(".shape[")) return std::nullopt;
    const auto axis = number();
    if (!axis.has_value() || !take("]")) return std::nullopt;
    return size_(path, *axis);
  }

  std::string_view text_;
  const InputSize& size_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<std::vector<SymbolicRelation>> parse_guard(std::string_view text, const InputSize& size) {
  return GuardReader(text, size).read();
}

}  // namespace polyphase
