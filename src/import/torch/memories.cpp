// Where PyTorch keeps the elements of a program's tensors: what as_strided counts in.
#include <algorithm>

#include "import/torch/importer.h"
#include "import/torch/node_words.h"
#include "import/torch/sym_expr.h"

namespace polyphase {
namespace {

// Views by their declaration that copy where they must.
bool may_copy(const std::string& target) {
  constexpr std::string_view kinds[] = {"contiguous", "flatten", "ravel", "reshape", "reshape_as", "to", "type_as"};
  const std::string name = split_target(target).second;
  return std::find(std::begin(kinds), std::end(kinds), name.substr(0, name.find('.'))) != std::end(kinds);
}

}  // namespace

Result<Dim> ProgramImporter::number_of(const ProgramNumber& number) {
  if (number.number.has_value()) return Dim(*number.number);
  return parse_symbolic(number.expression, [this](std::string_view symbol) { return meaning_of_symbol(symbol); });
}

Result<std::vector<AtenMemory>> ProgramImporter::memories_of(const ProgramGraph& graph, const std::string& name) {
  std::vector<AtenMemory> out;
  for (const std::string* at = &name; at != nullptr;) {
    bool missing = false;
    TRY(Value * value, value_of(*at, missing));
    const auto declared = graph.tensors.find(*at);
    if (value == nullptr || declared == graph.tensors.end()) break;
    const ProgramTensor& tensor = declared->second;
    const bool same_elements = out.empty() || value->type.dtype == out.front().tensor->type.dtype;
    if (!same_elements || tensor.strides.size() != static_cast<std::size_t>(value->type.shape.rank())) break;
    AtenMemory memory;
    memory.tensor = value;
    for (const ProgramNumber& stride : tensor.strides) {
      TRY(Dim one, number_of(stride));
      memory.strides.push_back(std::move(one));
    }
    TRY(memory.offset, number_of(tensor.storage_offset));
    const std::string* const base = viewed_by(*at);
    const auto found = base == nullptr ? scope_->names.end() : scope_->names.find(*base);
    const ProgramMeaning& meaning = scope_->names.at(*at);
    const bool is_view = found != scope_->names.end() && found->second.storage == meaning.storage;
    memory.may_be_own = !is_view || may_copy(meaning.view->target);
    out.push_back(std::move(memory));
    at = is_view ? base : nullptr;
  }
  return out;
}

}  // namespace polyphase
