// A reader of declarations as torch prints them.
#include "import/torch/schema.h"

#include <algorithm>

#include "base/check.h"
#include "base/scanner.h"

namespace polyphase {
namespace {

// "Tensor(a!)?" and "Tensor(a)[]" → the type without its mark, and the mark.
std::pair<std::string, std::string> split_alias(std::string_view type) {
  const auto open = type.find('(');
  if (open == std::string_view::npos) return {std::string(type), ""};
  const auto close = type.find(')', open);
  CHECK(close != std::string_view::npos);
  std::string plain(type.substr(0, open));
  plain += type.substr(close + 1);
  std::string mark(type.substr(open + 1, close - open - 1));
  mark = mark.substr(0, mark.find(" ->"));
  return {plain, mark};
}

ProgramItem default_item(std::string_view text, std::string_view type) {
  using Kind = ProgramItem::Kind;
  if (text == "None") return {};
  if (text == "True" || text == "False") return {.kind = Kind::boolean, .integer = text == "True" ? 1 : 0};
  if (text == "Mean") return {.kind = Kind::integer, .integer = 1};
  if (text.front() == '"' || text.front() == '\'')
    return {.kind = Kind::text, .text = std::string(text.substr(1, text.size() - 2))};
  Scanner scanner(text);
  const auto number = scanner.real();
  CHECK(number.ok() && scanner.at_end(), "a declaration of the table cannot be read");
  const bool real = text.find_first_of(".e") != std::string_view::npos || type.substr(0, 5) == "float";
  if (real) return {.kind = Kind::real, .real = *number};
  return {.kind = Kind::integer, .integer = static_cast<std::int64_t>(*number)};
}

ProgramArgument default_of(std::string_view text, std::string_view type) {
  ProgramArgument out;
  const bool is_list = type.find('[') != std::string_view::npos;
  if (text.front() != '[') {
    out.list = is_list && text != "None";  // one number counts for every entry
    out.items.push_back(default_item(text, type));
    return out;
  }
  out.list = true;
  std::string_view rest = text.substr(1, text.size() - 2);
  while (!rest.empty()) {
    const auto comma = std::min(rest.find(','), rest.size());
    const auto begin = rest.find_first_not_of(' ');
    out.items.push_back(default_item(rest.substr(begin, comma - begin), type));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return out;
}

// Cuts at commas outside brackets.
std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> out;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == ',' && depth == 0)) {
      auto piece = text.substr(begin, i - begin);
      while (!piece.empty() && piece.front() == ' ') piece.remove_prefix(1);
      if (!piece.empty()) out.push_back(piece);
      begin = i + 1;
    } else if (text[i] == '(' || text[i] == '[') {
      ++depth;
    } else if (text[i] == ')' || text[i] == ']') {
      --depth;
    }
  }
  return out;
}

}  // namespace

AtenSchema parse_schema(std::string_view text) {
  AtenSchema out;
  const auto open = text.find('(');
  const auto arrow = text.rfind(") -> ");
  CHECK(open != std::string_view::npos && arrow != std::string_view::npos, "a declaration of the table cannot be read");
  out.name = std::string(text.substr(0, open));
  for (const std::string_view piece : split(text.substr(open + 1, arrow - open - 1))) {
    if (piece == "*") continue;
    const auto equals = piece.find('=');
    const std::string_view head = piece.substr(0, equals);
    const auto space = head.rfind(' ');
    CHECK(space != std::string_view::npos, "a declaration of the table cannot be read");
    AtenParameter parameter;
    parameter.name = std::string(head.substr(space + 1));
    std::tie(parameter.type, parameter.alias) = split_alias(head.substr(0, space));
    parameter.has_default = equals != std::string_view::npos;
    if (parameter.has_default) parameter.value = default_of(piece.substr(equals + 1), parameter.type);
    out.parameters.push_back(std::move(parameter));
  }
  std::string_view results = text.substr(arrow + 5);
  if (results.front() == '(' && results.back() == ')') results = results.substr(1, results.size() - 2);
  for (const std::string_view piece : split(results)) {
    auto [type, alias] = split_alias(piece.substr(0, piece.find(' ')));
    out.results.push_back(std::move(type));
    out.result_aliases.push_back(std::move(alias));
  }
  return out;
}

}  // namespace polyphase
