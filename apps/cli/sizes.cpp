// Parses sizes, and fills in what was left open.
#include "cli/sizes.h"

#include <algorithm>
#include <charconv>

#include "cli/terminal.h"
#include "io/try.h"

namespace polyphase::cli {
namespace {

Error refuse_sizes(std::string message, std::string hint) {
  return {ErrorCode::invalid_argument, std::move(message), std::move(hint)};
}

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool is_name(const std::string& text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !text.empty() && letter(text.front()) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '.'; });
}

// What one symbol gets: from flags, or by where it stands.
class SymbolValues {
 public:
  // Each size that is chosen here grows by a digit of `growth` in base 4, the batch aside.
  SymbolValues(const api::EngineInfo& info, const SizeFlags& flags, std::int64_t growth)
      : info_(info), flags_(flags), growth_(growth) {}

  Result<void> take(const std::string& name, std::int64_t value, const std::string& where) {
    const auto [found, added] = values_.emplace(name, value);
    if (!added && found->second != value) {
      return refuse_sizes("size " + name + " is " + std::to_string(found->second) + " and also " +
                              std::to_string(value) + " (" + where + ").",
                          "The same name is the same size everywhere.");
    }
    const auto range = info_.dims.find(name);
    if (range != info_.dims.end() && (value < range->second.low || value > range->second.high)) {
      return refuse_sizes("size " + name + " is " + std::to_string(value) + " (" + where +
                              "), the engine was compiled for " + std::to_string(range->second.low) + ".." +
                              std::to_string(range->second.high) + ".",
                          "Compile with another --dim " + name + "=LOW..HIGH.");
    }
    return {};
  }

  Result<std::int64_t> value_of(const std::string& name, std::size_t axis, std::size_t rank) {
    const auto found = values_.find(name);
    if (found != values_.end()) return found->second;
    const auto flag = flags_.dims.find(name);
    if (flag != flags_.dims.end() && flag->second.low == flag->second.high) {
      IO_TRY_VOID(take(name, flag->second.low, "--dim"));
      return flag->second.low;
    }
    std::int64_t value = 1;
    if (axis != 0) {
      value = (rank >= 5 ? 64 : 256) + growth_ % 4;
      growth_ /= 4;
    }
    for (const auto* ranges : {&info_.dims, &flags_.dims}) {
      const auto range = ranges->find(name);
      if (range != ranges->end()) value = std::clamp(value, range->second.low, range->second.high);
    }
    values_.emplace(name, value);
    chosen.push_back(name + "=" + std::to_string(value));
    return value;
  }

  std::vector<std::string> chosen;

 private:
  const api::EngineInfo& info_;
  const SizeFlags& flags_;
  std::int64_t growth_;
  std::map<std::string, std::int64_t> values_;
};

// The numbers of --shape for this input, or nothing: not given, or given with names.
std::optional<Sizes> given_numbers(const api::Port& port, const SizeFlags& flags) {
  const auto found = flags.shapes.find(port.name);
  if (found == flags.shapes.end()) return std::nullopt;
  Sizes out;
  for (const std::string& word : found->second) {
    const auto value = number(word);
    if (!value.has_value()) return std::nullopt;
    out.push_back(*value);
  }
  return out;
}

Result<void> bind_given(const api::Port& port, const Sizes& sizes, SymbolValues& symbols) {
  const std::string where = "--shape " + port.name + "=" + shape_text(sizes);
  if (sizes.size() != port.sizes.size()) {
    return refuse_sizes(
        where + " has " + std::to_string(sizes.size()) + " axes, the input is " + shape_text(port.sizes) + ".",
        "Give every axis.");
  }
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    const auto fixed = number(port.sizes[axis]);
    if (fixed.has_value() && *fixed != sizes[axis]) {
      return refuse_sizes(where + ": axis " + std::to_string(axis) + " is " + std::to_string(sizes[axis]) +
                              ", the network fixes it to " + std::to_string(*fixed) + ".",
                          "The input is " + shape_text(port.sizes) + ".");
    }
    if (is_name(port.sizes[axis])) IO_TRY_VOID(symbols.take(port.sizes[axis], sizes[axis], where));
  }
  return {};
}

Result<RunSizes> grown_sizes(const api::Engine& engine, const SizeFlags& flags, std::int64_t growth) {
  const api::EngineInfo info = engine.info();
  const std::vector<api::Port>& ports = engine.inputs();
  SymbolValues symbols(info, flags, growth);
  for (const api::Port& port : ports) {
    const auto numbers = given_numbers(port, flags);
    if (numbers.has_value()) IO_TRY_VOID(bind_given(port, *numbers, symbols));
  }
  RunSizes out;
  for (const api::Port& port : ports) {
    const auto numbers = given_numbers(port, flags);
    if (numbers.has_value()) {
      out.inputs.push_back(*numbers);
      continue;
    }
    Sizes sizes;
    for (std::size_t axis = 0; axis < port.sizes.size(); ++axis) {
      const auto fixed = number(port.sizes[axis]);
      if (fixed.has_value()) {
        sizes.push_back(*fixed);
      } else if (is_name(port.sizes[axis])) {
        IO_TRY(const std::int64_t value, symbols.value_of(port.sizes[axis], axis, port.sizes.size()));
        sizes.push_back(value);
      } else {
        return refuse_sizes("input '" + plain(port.name) + "' has the size " + port.sizes[axis] + " on axis " +
                                std::to_string(axis) + ".",
                            "Give its numbers: --shape " + plain(port.name) + "=…");
      }
    }
    out.inputs.push_back(std::move(sizes));
  }
  out.chosen = symbols.chosen;
  return out;
}

Result<NamedWord> named_word(const std::string& word, const std::string& flag, const std::string& example) {
  IO_TRY(NamedWord named, split_name(word, flag));
  if (named.name.empty())
    return refuse_sizes(flag + " is '" + word + "', expected NAME=SIZES.", "For example " + flag + " " + example + ".");
  return named;
}

}  // namespace

bool is_all_numbers(const std::vector<std::string>& sizes) {
  return std::all_of(sizes.begin(), sizes.end(), [](const std::string& size) { return number(size).has_value(); });
}

Result<NamedWord> split_name(const std::string& word, const std::string& flag) {
  const std::size_t at = word.find('=');
  if (at == std::string::npos && !word.empty()) return NamedWord{"", word};
  if (word.empty() || at == 0 || at + 1 == word.size()) {
    return refuse_sizes(flag + " is '" + word + "', expected NAME=VALUE.", "Nothing may be empty.");
  }
  return NamedWord{word.substr(0, at), word.substr(at + 1)};
}

std::string range_text(const api::SizeRange& range) {
  return std::to_string(range.low) + ".." + (range.high == INT64_MAX ? "" : std::to_string(range.high));
}

Result<api::SizeRange> parse_range(const std::string& text, const std::string& flag) {
  const auto broken = [&] {
    return refuse_sizes(flag + " has the range '" + text + "', expected a number or LOW..HIGH with LOW at most HIGH.",
                        "For example 64..1024.");
  };
  const std::size_t dots = text.find("..");
  if (dots == std::string::npos) {
    const auto value = number(text);
    if (!value.has_value() || *value < 0) return broken();
    return api::SizeRange{*value, *value};
  }
  api::SizeRange range;
  const std::string low = text.substr(0, dots);
  const std::string high = text.substr(dots + 2);
  if (low.empty() && high.empty()) return broken();
  if (!low.empty()) {
    const auto value = number(low);
    if (!value.has_value() || *value < 0) return broken();
    range.low = *value;
  }
  if (!high.empty()) {
    const auto value = number(high);
    if (!value.has_value()) return broken();
    range.high = *value;
  }
  if (range.low > range.high) return broken();
  return range;
}

Result<SizeFlags> parse_size_flags(const std::vector<std::string>& shapes, const std::vector<std::string>& dims,
                                   const std::vector<std::string>& tune_for) {
  SizeFlags out;
  for (const std::string& word : shapes) {
    IO_TRY(const NamedWord named, named_word(word, "--shape", "x=1x3xHxW"));
    IO_TRY(std::vector<std::string> sizes, api::parse_sizes(named.rest));
    if (!out.shapes.emplace(named.name, std::move(sizes)).second)
      return refuse_sizes("--shape names '" + named.name + "' twice.", "Give each input once.");
  }
  for (const std::string& word : dims) {
    IO_TRY(const NamedWord named, split_name(word, "--dim"));
    if (!is_name(named.name))
      return refuse_sizes("--dim is '" + word + "', expected NAME=LOW..HIGH.", "For example --dim H=64..1024.");
    IO_TRY(const api::SizeRange range, parse_range(named.rest, "--dim " + named.name));
    if (!out.dims.emplace(named.name, range).second)
      return refuse_sizes("--dim names '" + named.name + "' twice.", "Give each size once.");
  }
  for (const std::string& word : tune_for) {
    IO_TRY(const NamedWord named, named_word(word, "--tune-for", "x=1x3x512x512"));
    IO_TRY(const std::vector<std::string> sizes, api::parse_sizes(named.rest));
    Sizes numbers;
    for (const std::string& size : sizes) {
      const auto value = number(size);
      if (!value.has_value())
        return refuse_sizes("--tune-for " + word + ": '" + size + "' is not a number.",
                            "For example --tune-for x=1x3x512x512.");
      numbers.push_back(*value);
    }
    if (!out.tune_for.emplace(named.name, std::move(numbers)).second)
      return refuse_sizes("--tune-for names '" + named.name + "' twice.", "Give each input once.");
  }
  return out;
}

Result<RunSizes> run_sizes(const api::Session& session, const SizeFlags& flags) {
  const api::Engine& engine = session.engine();
  const std::vector<api::Port>& ports = engine.inputs();
  for (const auto& [name, sizes] : flags.shapes) {
    const bool known = std::any_of(ports.begin(), ports.end(),
                                   [&, &wanted = name](const api::Port& port) { return port.name == wanted; });
    if (known) continue;
    std::vector<std::string> names;
    for (const api::Port& port : ports) names.push_back("'" + plain(port.name) + "'");
    return refuse_sizes("--shape names '" + name + "', which is no input.",
                        "The inputs are " + join(names, ", ") + ".");
  }
  IO_TRY(const RunSizes first, grown_sizes(engine, flags, 0));
  if (first.chosen.empty()) return first;
  constexpr std::int64_t tries = 64;  // every growth of three sizes
  for (std::int64_t growth = 0; growth < tries; ++growth) {
    IO_TRY(RunSizes sizes, grown_sizes(engine, flags, growth));
    if (session.output_sizes(sizes.inputs).ok()) return sizes;
  }
  return first;
}

}  // namespace polyphase::cli
