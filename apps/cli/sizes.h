// Sizes on the command line: 1x3xHxW, H=64..1024, and the numbers that a run takes where an engine leaves sizes open.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "polyphase/polyphase.h"

namespace polyphase::cli {

using Sizes = std::vector<std::int64_t>;

bool is_all_numbers(const std::vector<std::string>& sizes);

struct SizeFlags {
  std::map<std::string, std::vector<std::string>> shapes;  // --shape
  std::map<std::string, api::SizeRange> dims;              // --dim
  std::map<std::string, Sizes> tune_for;                   // --tune-for
};

// "NAME=REST"; an empty NAME where there is no '='. Error: nothing on a side.
struct NamedWord {
  std::string name;
  std::string rest;
};
Result<NamedWord> split_name(const std::string& word, const std::string& flag);

Result<SizeFlags> parse_size_flags(const std::vector<std::string>& shapes, const std::vector<std::string>& dims,
                                   const std::vector<std::string>& tune_for);
// "64..1024", "64..", "..1024", "512".
Result<api::SizeRange> parse_range(const std::string& text, const std::string& flag);

std::string range_text(const api::SizeRange& range);  // "64..1024", "64.."

// Numbers for every input of an engine.
struct RunSizes {
  std::vector<Sizes> inputs;
  std::vector<std::string> chosen;  // "H=256": sizes nobody gave, chosen here
};
// From --shape and --dim; what they leave open becomes 1 on the first axis and 256 elsewhere (64 in volumes), inside
// its range, or up to 3 more where only that passes the engine's own checks (an odd size where a reshape needs one).
// Error: a size contradicts the engine, or is an expression that only --shape can tell.
Result<RunSizes> run_sizes(const api::Session& session, const SizeFlags& flags);

}  // namespace polyphase::cli
