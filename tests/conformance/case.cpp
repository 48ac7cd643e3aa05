// Reads case lines and makes their data.
#include "conformance/case.h"

#include <charconv>
#include <random>

#include "base/scanner.h"

namespace polyphase::test {
namespace {

Error refuse(const std::string& message) { return {ErrorCode::invalid_argument, message}; }

Result<std::int64_t> integer_of(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size())
    return refuse("'" + std::string(text) + "' is no integer");
  return value;
}

Result<void> parse_range(std::string_view text, CaseOperand& operand) {
  const std::size_t dots = text.find("..");
  if (dots == std::string_view::npos) return refuse("a range reads low..high, not '" + std::string(text) + "'");
  const std::size_t slash = std::min(text.find('/'), text.size());
  TRY(operand.low, integer_of(text.substr(0, dots)));
  TRY(operand.high, integer_of(text.substr(dots + 2, slash - dots - 2)));
  if (slash < text.size()) {
    TRY(operand.divisor, integer_of(text.substr(slash + 1)));
  }
  if (operand.low > operand.high || operand.divisor == 0)
    return refuse("the range '" + std::string(text) + "' is empty");
  return {};
}

// f32[2, 3], f32[2]{1, 2}, i64[4]@0..3
Result<CaseOperand> parse_operand(std::string_view text) {
  CaseOperand out;
  Scanner scanner(text);
  TRY(const std::string word, scanner.word());
  const auto dtype = dtype_from_name(word);
  if (!dtype.has_value()) return refuse("'" + word + "' is no dtype");
  out.dtype = *dtype;
  TRY_VOID(scanner.expect("["));
  while (!scanner.take("]")) {
    if (!out.sizes.empty()) TRY_VOID(scanner.expect(","));
    TRY(const std::int64_t size, scanner.integer());
    out.sizes.push_back(size);
  }
  if (scanner.take("{")) {
    while (!scanner.take("}")) {
      if (!out.values.empty()) TRY_VOID(scanner.expect(","));
      TRY(const double value, scanner.real());
      out.values.push_back(value);
    }
  } else if (scanner.take("@")) {
    TRY_VOID(parse_range(text.substr(scanner.position()), out));
    return out;
  }
  if (!scanner.at_end()) return refuse("operand '" + std::string(text) + "' goes on too long");
  return out;
}

// The operator's place for an operand name; a variadic one takes the next free place.
std::optional<std::size_t> place_in_part(const CasePart& part, const std::string& name) {
  const std::vector<OperandSpec>& specs = part.op->inputs;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].name != name) continue;
    return specs[i].variadic ? std::max(i, part.operands.size()) : i;
  }
  return std::nullopt;
}

Result<void> parse_setting(Case& out, const std::string& name, std::string_view value) {
  Scanner scanner(value);
  if (name == "layout") {
    out.layout = value;
    if (value != "row_major" && value != "channels_last") return refuse("no layout is named '" + out.layout + "'");
  } else if (name == "seed") {
    TRY(const std::int64_t seed, integer_of(value));
    out.seed = static_cast<std::uint64_t>(seed);
  } else {
    TRY((name == "ulp" ? out.ulp : out.tolerance), scanner.real());
  }
  return {};
}

// An ending's first operand that was not written is the running value; a required one after it has the same type.
void add_running(CasePart& part) {
  part.operands.resize(std::max(part.operands.size(), part.op->inputs.size()));
  bool placed = false;
  for (std::size_t i = 0; i < part.operands.size(); ++i) {
    if (part.operands[i].has_value() || part.op->inputs[i].optional) continue;
    part.operands[i] = CaseOperand{};
    part.operands[i]->running = !placed;
    part.operands[i]->like_running = placed;
    placed = true;
  }
}

}  // namespace

Result<Case> parse_case(const std::string& line, const Registry& registry) {
  Case out;
  out.line = line;
  Scanner scanner(line);
  std::string attributes;
  const auto finish_part = [&]() -> Result<void> {
    CasePart& part = out.parts.back();
    TRY(Attributes given, parse_attributes(attributes, part.op->attributes));
    TRY(part.attributes, part.op->complete(std::move(given)));
    if (out.parts.size() > 1) add_running(part);
    attributes.clear();
    return {};
  };
  while (!scanner.at_end()) {
    if (out.parts.empty() || scanner.take("then")) {
      if (!out.parts.empty()) TRY_VOID(finish_part());
      TRY(const std::string name, scanner.word());
      const OpDef* op = registry.find(name);
      if (op == nullptr) return refuse("no operator is named '" + name + "'");
      out.parts.push_back({op, {}, {}});
      continue;
    }
    TRY(const std::string name, scanner.word());
    TRY_VOID(scanner.expect("="));
    const std::string_view value = scanner.until(" \t");
    CasePart& part = out.parts.back();
    if (const auto place = place_in_part(part, name); place.has_value()) {
      TRY(CaseOperand operand, parse_operand(value));
      if (part.operands.size() <= *place) part.operands.resize(*place + 1);
      part.operands[*place] = std::move(operand);
    } else if (name == "ulp" || name == "tolerance" || name == "layout" || name == "seed") {
      TRY_VOID(parse_setting(out, name, value));
    } else {
      attributes += name + "=" + std::string(value) + " ";
    }
  }
  if (out.parts.empty()) return refuse("the line is empty");
  TRY_VOID(finish_part());
  return out;
}

Tensor make_tensor(const CaseOperand& operand, std::uint64_t seed) {
  Tensor out = Tensor::allocate(operand.dtype, operand.sizes).value();
  const TensorView& view = out.view();
  const auto count = static_cast<std::size_t>(view.element_count());
  const std::size_t size = size_bytes(operand.dtype);
  std::mt19937_64 random(seed);
  const auto span = static_cast<std::uint64_t>(operand.high - operand.low) + 1;
  for (std::size_t i = 0; i < count; ++i) {
    if (!operand.values.empty()) {
      store_double(view.data + i * size, operand.dtype, operand.values[i % operand.values.size()]);
    } else if (operand.divisor != 1) {
      const std::int64_t drawn = operand.low + static_cast<std::int64_t>(random() % span);
      store_double(view.data + i * size, operand.dtype,
                   static_cast<double>(drawn) / static_cast<double>(operand.divisor));
    } else if (operand.dtype == DType::boolean) {
      store_integer(view.data + i * size, operand.dtype, static_cast<std::int64_t>(random() >> 7U & 1U));
    } else {
      store_integer(view.data + i * size, operand.dtype, operand.low + static_cast<std::int64_t>(random() % span));
    }
  }
  return out;
}

}  // namespace polyphase::test
