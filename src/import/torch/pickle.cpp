// The stack machine of pickles.
#include "import/torch/pickle.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_map>

#include "wire/printable.h"

namespace polyphase {
namespace {

using Kind = PickleValue::Kind;

constexpr std::size_t most_values = 4'000'000;

Error damaged(const std::string& what) {
  return Error{ErrorCode::corrupt, "the pickled weights are damaged: " + what + ".",
               "Copy the file again, or save the program again."};
}

Error would_run(const std::string& what) {
  return Error{
      ErrorCode::unsupported, "the pickled weights hold " + what + ": to read them would run code of the file.",
      "Polyphase reads plain tensors only. Where you trust the file, load it with torch.export.load in the PyTorch "
      "that wrote it, and save it with torch.export.save of PyTorch 2.9 or newer."};
}

class PickleMachine {
 public:
  PickleMachine(std::string_view bytes, std::span<const std::string_view> functions)
      : bytes_(bytes), functions_(functions) {}

  Result<Pickle> run() {
    while (!ended_) {
      if (at_ >= bytes_.size()) return damaged("they end too early");
      const std::size_t place = at_;
      TRY_VOID(step(static_cast<unsigned char>(bytes_[at_++])));
      if (broken_) return damaged("no value is where byte " + std::to_string(place) + " needs one");
      if (out_.values.size() > most_values)
        return Error{ErrorCode::out_of_memory,
                     "the pickled weights describe more than " + std::to_string(most_values) + " values.",
                     "Save the program with torch.export.save of PyTorch 2.9 or newer."};
    }
    return std::move(out_);
  }

 private:
  // What the machine lacks is noted in `broken_` and looked at once behind each step.
  std::string_view take(std::uint64_t count) {
    if (count > bytes_.size() - at_) {
      broken_ = true;
      return {};
    }
    const std::string_view taken = bytes_.substr(at_, count);
    at_ += count;
    return taken;
  }
  std::uint64_t number(std::size_t width) {
    const std::string_view digits = take(width);
    std::uint64_t value = 0;
    for (std::size_t i = digits.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(digits[i]);
    return value;
  }
  std::string_view line() {
    const std::size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) {
      broken_ = true;
      return {};
    }
    const std::string_view taken = bytes_.substr(at_, end - at_);
    at_ = end + 1;
    return taken;
  }
  // Two's complement, at most 8 bytes.
  Result<void> push_long(std::size_t width) {
    if (width > 8) return damaged("an integer of " + std::to_string(width) + " bytes");
    std::uint64_t value = number(width);
    if (width > 0 && width < 8 && (value >> (8 * width - 1)) != 0) value |= ~std::uint64_t{0} << (8 * width);
    push({.kind = Kind::integer, .integer = static_cast<std::int64_t>(value), .text = {}, .entries = {}});
    return {};
  }

  void push(PickleValue value) {
    stack_.push_back(static_cast<std::uint32_t>(out_.values.size()));
    out_.values.push_back(std::move(value));
  }
  void push(Kind kind, std::vector<std::uint32_t> entries = {}) {
    push({.kind = kind, .integer = 0, .text = {}, .entries = std::move(entries)});
  }
  void push_text(std::string_view text) { push({.kind = Kind::text, .integer = 0, .text = text, .entries = {}}); }

  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  // The last values on the stack, in order; none may lie below a mark.
  std::vector<std::uint32_t> pop(std::size_t count) {
    if (stack_.size() - floor() < count) {
      broken_ = true;
      return std::vector<std::uint32_t>(count, 0);
    }
    const auto begin = stack_.end() - static_cast<std::ptrdiff_t>(count);
    std::vector<std::uint32_t> taken(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    return taken;
  }
  std::vector<std::uint32_t> pop_to_mark() {
    if (marks_.empty()) {
      broken_ = true;
      return {};
    }
    auto taken = pop(stack_.size() - marks_.back());
    marks_.pop_back();
    return taken;
  }
  // Entries for the list or dictionary on top; a call may have made a dictionary.
  void extend(Kind kind, const std::vector<std::uint32_t>& more) {
    if (stack_.size() <= floor() || (kind == Kind::dict && more.size() % 2 != 0)) {
      broken_ = true;
      return;
    }
    PickleValue& into = out_.values[stack_.back()];
    if (into.kind == kind || (kind == Kind::dict && into.kind == Kind::call)) {
      into.entries.insert(into.entries.end(), more.begin(), more.end());
    } else {
      broken_ = true;
    }
  }

  void remember(std::uint64_t key) {
    if (stack_.empty()) {
      broken_ = true;
    } else {
      memo_[key] = stack_.back();
    }
  }
  void recall(std::uint64_t key) {
    const auto found = memo_.find(key);
    if (found == memo_.end()) {
      broken_ = true;
    } else {
      stack_.push_back(found->second);
    }
  }

  Result<void> push_function(std::string_view module, std::string_view name) {
    if (broken_) return {};
    const std::string whole = std::string(module) + " " + std::string(name);
    const auto found = std::find(functions_.begin(), functions_.end(), whole);
    if (found == functions_.end()) return would_run(wire::quoted_name(std::string(module) + "." + std::string(name)));
    push({.kind = Kind::function, .integer = found - functions_.begin(), .text = {}, .entries = {}});
    return {};
  }

  Result<void> step(unsigned char code);
  bool step_value(unsigned char code);
  bool step_container(unsigned char code);

  std::string_view bytes_;
  std::span<const std::string_view> functions_;
  std::size_t at_ = 0;
  bool ended_ = false;
  bool broken_ = false;
  Pickle out_;
  std::vector<std::uint32_t> stack_;
  std::vector<std::size_t> marks_;  // heights of the stack
  std::unordered_map<std::uint64_t, std::uint32_t> memo_;
};

// Numbers and text; the letters are pickle's own.
bool PickleMachine::step_value(unsigned char code) {
  switch (code) {
    case 'N':
      push(Kind::none);
      return true;
    case 0x88:  // True, False
    case 0x89:
      push({.kind = Kind::boolean, .integer = code == 0x88, .text = {}, .entries = {}});
      return true;
    case 'K':
      push({.kind = Kind::integer, .integer = static_cast<std::int64_t>(number(1)), .text = {}, .entries = {}});
      return true;
    case 'M':
      push({.kind = Kind::integer, .integer = static_cast<std::int64_t>(number(2)), .text = {}, .entries = {}});
      return true;
    case 'G':
      take(8);
      push(Kind::real);
      return true;
    case 0x8c:  // text: 1, 4 or 8 bytes of length
    case 'C':
      push_text(take(number(1)));
      return true;
    case 'X':
    case 'B':
      push_text(take(number(4)));
      return true;
    case 0x8d:
    case 0x8e:
      push_text(take(number(8)));
      return true;
    default:
      return false;
  }
}

bool PickleMachine::step_container(unsigned char code) {
  switch (code) {
    case '(':
      marks_.push_back(stack_.size());
      return true;
    case ')':
      push(Kind::tuple);
      return true;
    case 't':
      push(Kind::tuple, pop_to_mark());
      return true;
    case 0x85:
    case 0x86:
    case 0x87:
      push(Kind::tuple, pop(code - 0x84U));
      return true;
    case ']':
      push(Kind::list);
      return true;
    case 'a':
      extend(Kind::list, pop(1));
      return true;
    case 'e':
      extend(Kind::list, pop_to_mark());
      return true;
    case '}':
      push(Kind::dict);
      return true;
    case 's':
      extend(Kind::dict, pop(2));
      return true;
    case 'u':
      extend(Kind::dict, pop_to_mark());
      return true;
    default:
      return false;
  }
}

Result<void> PickleMachine::step(unsigned char code) {
  if (step_value(code) || step_container(code)) return {};
  switch (code) {
    case 0x80: {  // the protocol
      const std::uint64_t protocol = number(1);
      if (protocol >= 2 && protocol <= 5) return {};
      return damaged("they are of protocol " + std::to_string(protocol));
    }
    case 0x95:  // a frame
      take(8);
      return {};
    case 'J':
      return push_long(4);
    case 0x8a:
      return push_long(number(1));
    case 'q':
      remember(number(1));
      return {};
    case 'r':
      remember(number(4));
      return {};
    case 0x94:
      remember(memo_.size());
      return {};
    case 'h':
      recall(number(1));
      return {};
    case 'j':
      recall(number(4));
      return {};
    case 'c': {
      const std::string_view module = line();
      return push_function(module, line());
    }
    case 0x93: {
      const auto names = pop(2);
      if (broken_ || out_[names[0]].kind != Kind::text || out_[names[1]].kind != Kind::text) {
        broken_ = true;
        return {};
      }
      return push_function(out_[names[0]].text, out_[names[1]].text);
    }
    case 'R': {
      auto parts = pop(2);
      if (broken_ || out_[parts[0]].kind != Kind::function || out_[parts[1]].kind != Kind::tuple) {
        broken_ = true;
      } else {
        push(Kind::call, std::move(parts));
      }
      return {};
    }
    case 'b': {  // attributes: those of a call's result are of no use here
      pop(1);
      if (stack_.size() <= floor()) {
        broken_ = true;
        return {};
      }
      const Kind kind = out_[stack_.back()].kind;
      if (kind == Kind::dict || kind == Kind::call) return {};
      return would_run("an object with a state of its own");
    }
    case 'Q':
      push(Kind::persistent, pop(1));
      return {};
    case '.': {
      const auto last = pop(1);
      broken_ = broken_ || !stack_.empty() || !marks_.empty();
      out_.root = last[0];
      ended_ = true;
      return {};
    }
    case 'o':
    case 'i':
    case 0x81:
    case 0x92:
    case 0x82:
    case 0x83:
    case 0x84:
      return would_run("an object of a class of its own");
    default:
      return damaged("the code " + std::to_string(code) + " at byte " + std::to_string(at_ - 1) +
                     " is none that torch.save writes");
  }
}

}  // namespace

Result<Pickle> read_pickle(std::string_view bytes, std::span<const std::string_view> functions) {
  return PickleMachine(bytes, functions).run();
}

}  // namespace polyphase
