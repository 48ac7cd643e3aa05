// Column widths count code points, so that names in other scripts stay aligned.
#include "cli/table.h"

#include <algorithm>

namespace polyphase::cli {
namespace {

std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

}  // namespace

std::string Table::text() const {
  std::vector<std::size_t> widths;
  for (const Column& column : columns_) widths.push_back(width_of(column.title));
  for (const auto& row : rows_) {
    if (row.size() < columns_.size()) continue;
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string out;
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string space(widths[i] - width_of(cells[i]), ' ');
      if (i > 0) text += "  ";
      text += columns_[i].align == Align::right ? space + cells[i] : cells[i] + space;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  };
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(column.title);
  line(titles);
  for (const auto& row : rows_) {
    if (row.size() < columns_.size()) {
      out += "      " + row.front() + "\n";
    } else {
      line(row);
    }
  }
  return out;
}

}  // namespace polyphase::cli
