// Guards as text of Dims: each size of an input gets a name, and parse_dim reads what stands between the comparisons.
#include "import/torch/guards.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <string>

namespace polyphase {
namespace {

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

class GuardReader {
 public:
  GuardReader(std::string_view text, const InputSize& size) : text_(text), size_(size) {}

  std::optional<std::vector<SymbolicRelation>> read() {
    if (!name_sizes()) return std::nullopt;
    std::vector<SymbolicRelation> out;
    std::string_view rest = named_;
    constexpr std::string_view conjunction = " and ";
    for (;;) {
      const auto end = rest.find(conjunction);
      if (!comparison(rest.substr(0, end), out)) return std::nullopt;
      if (end == std::string_view::npos) return out;
      rest.remove_prefix(end + conjunction.size());
    }
  }

 private:
  bool take(std::string_view token) {
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  std::optional<std::int64_t> number() {
    std::int64_t value = 0;
    const char* const begin = text_.data() + at_;
    const auto [end, status] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (status != std::errc() || !is_digit(*begin)) return std::nullopt;
    at_ += static_cast<std::size_t>(end - begin);
    return value;
  }

  // The text with a name in the place of each size. False: it holds other words.
  bool name_sizes() {
    while (at_ < text_.size()) {
      if (take("L[")) {
        const auto size = input_size();
        if (!size.has_value()) return false;
        const std::string name = "size" + std::to_string(sizes_.size());
        sizes_.emplace(name, *size);
        named_ += name;
      } else if (is_letter(text_[at_])) {
        const std::size_t begin = at_;
        while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
        const std::string_view word = text_.substr(begin, at_ - begin);
        if (word == "Max" || word == "max") {
          named_ += "max";
        } else if (word == "Min" || word == "min") {
          named_ += "min";
        } else if (word == "and") {
          named_ += word;
        } else {
          return false;
        }
      } else {
        named_ += text_[at_++];
      }
    }
    return true;
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

  std::optional<Dim> value(std::string_view text) const {
    auto read = parse_dim(text);
    if (!read.ok()) return std::nullopt;
    const Dim found = read->substitute(sizes_);
    return found.overflowed() ? std::nullopt : std::optional(found);
  }

  // A OP B OP C …
  bool comparison(std::string_view text, std::vector<SymbolicRelation>& out) const {
    using Relation = DimCheck::Relation;
    constexpr std::string_view signs = "<>=!";
    auto end = text.find_first_of(signs);
    auto left = value(text.substr(0, end));
    if (end == std::string_view::npos || !left.has_value()) return false;
    while (end != std::string_view::npos) {
      const std::size_t length = text.substr(end + 1, 1) == "=" ? 2 : 1;
      const std::string_view sign = text.substr(end, length);
      text.remove_prefix(end + length);
      end = text.find_first_of(signs);
      const auto right = value(text.substr(0, end));
      if (!right.has_value()) return false;
      if (sign == "<=") {
        out.push_back({*left, Relation::less_equal, *right});
      } else if (sign == ">=") {
        out.push_back({*right, Relation::less_equal, *left});
      } else if (sign == "<") {
        out.push_back({*left + 1, Relation::less_equal, *right});
      } else if (sign == ">") {
        out.push_back({*right + 1, Relation::less_equal, *left});
      } else if (sign == "==") {
        out.push_back({*left, Relation::equal, *right});
      } else if (sign != "!=") {
        return false;
      }
      left = right;
    }
    return true;
  }

  std::string_view text_;
  const InputSize& size_;
  std::size_t at_ = 0;
  std::string named_;
  std::map<std::string, Dim, std::less<>> sizes_;
};

}  // namespace

std::optional<std::vector<SymbolicRelation>> parse_guard(std::string_view text, const InputSize& size) {
  return GuardReader(text, size).read();
}

}  // namespace polyphase
