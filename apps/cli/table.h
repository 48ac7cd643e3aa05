// A table of text: columns as wide as their widest cell, numbers to the right.
#pragma once

#include <string>
#include <vector>

namespace polyphase::cli {

class Table {
 public:
  enum class Align : unsigned char { left, right };
  struct Column {
    std::string title;
    Align align = Align::left;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  // A line of its own under the last row, indented.
  void note(std::string line) { rows_.push_back({std::move(line)}); }
  bool empty() const { return rows_.empty(); }
  std::string text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;  // one cell where the table has more columns: a note
};

}  // namespace polyphase::cli
