// Writes in place: the operand's name takes the result, and so does what it is a view of.
#include <algorithm>
#include <initializer_list>
#include <set>

#include "import/compose/composer.h"
#include "import/torch/importer.h"
#include "import/torch/node_words.h"
#include "wire/printable.h"

namespace polyphase {

// What memory shares in PyTorch we do not share: a name that is read after another name of its memory was written would
// hold old numbers. Names outside of the graph that writes count as well; those that the written one is a view of do
// not: they are written too.
Result<void> ProgramImporter::check_aliases(const std::string& written) const {
  const int storage = scope_->names.at(written).storage;
  std::set<std::string_view> above;
  for (const std::string* name = &written; name != nullptr; name = viewed_by(*name)) above.insert(*name);
  for (const ProgramScope* scope = scope_; scope != nullptr; scope = scope->outer) {
    for (const auto& [name, meaning] : scope->names) {
      if (meaning.storage != storage || (scope == scope_ && above.count(name) != 0)) continue;
      const auto last = scope->last_use.find(name);
      if (last == scope->last_use.end() || last->second <= scope->at) continue;
      return lacking("it writes into " + wire::quoted_name(written) + ", whose memory " + wire::quoted_name(name) +
                         " shares and is read later.",
                     "Save exported_program.run_decompositions({}), which has no writes in place.");
    }
  }
  return {};
}

const std::string* ProgramImporter::viewed_by(const std::string& name) const {
  const auto found = scope_->names.find(name);
  if (found == scope_->names.end() || found->second.view == nullptr) return nullptr;
  const auto& inputs = found->second.view->inputs;
  if (inputs.empty() || inputs.front().second.items.size() != 1) return nullptr;
  return &inputs.front().second.items.front().text;
}

// The base of a view with `part` in the view's place; null: we have no way.
Result<Value*> ProgramImporter::put_back(const ProgramGraph& graph, const ProgramNode& view, Value* base, Value* part,
                                         const std::string& node_name) {
  const auto [domain, target] = split_target(view.target);
  const std::string kind = target.substr(0, target.find('.'));
  Emitter emitter(*scope_->graph, node_name);
  Composer c(emitter);
  const auto is_one_of = [&](std::initializer_list<std::string_view> kinds) {
    return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
  };
  // Not reshape, flatten and contiguous: those may have copied.
  const bool was_written = kind.back() == '_';  // the result of a write is the operand itself
  if (was_written ||
      is_one_of({"alias", "detach", "view", "unflatten", "squeeze", "unsqueeze", "view_as_complex", "view_as_real"}))
    return c.result(c.reshape(part, base->type.shape.dims()));
  // These undo themselves, or have an operator of their own for it.
  const bool undoes_itself = is_one_of({"t", "transpose", "swapaxes", "swapdims"});
  const AtenConverter* const converter = kind == "slice"    ? table_.find("torch.ops.aten.slice_scatter.default")
                                         : kind == "select" ? table_.find("torch.ops.aten.select_scatter.default")
                                                            : table_.find(view.target);
  if (converter == nullptr || !(undoes_itself || is_one_of({"slice", "select", "permute"})))
    return static_cast<Value*>(nullptr);
  bool missing = false;
  ProgramNode again = view;
  if (!undoes_itself && kind != "permute") again.inputs.emplace_back("src", view.inputs.front().second);
  TRY(auto arguments, arguments_of(graph, again, *converter, missing, emitter));
  arguments.at("self").tensors = {kind == "slice" || kind == "select" ? base : part};
  if (kind == "permute") {
    AtenArgument& dims = arguments.at("dims");
    const std::vector<AtenScalar> given = dims.scalars;
    const auto rank = static_cast<std::int64_t>(given.size());
    for (std::int64_t i = 0; i < rank; ++i) {
      const Dim& to = given[static_cast<std::size_t>(i)].size;
      if (!to.is_constant()) return static_cast<Value*>(nullptr);
      const std::int64_t axis = to.value() < 0 ? to.value() + rank : to.value();
      if (axis < 0 || axis >= rank) return static_cast<Value*>(nullptr);
      dims.scalars[static_cast<std::size_t>(axis)].size = i;
    }
  }
  if (const auto src = arguments.find("src"); src != arguments.end()) src->second.tensors = {part};
  AtenNode context(*scope_->graph, node_name, *converter, std::move(arguments), {AtenResult{part->type.dtype}},
                   warnings_, used_symbols_);
  TRY(const Values made, converted(context));
  TRY_VOID(context.finish());
  return made.at(0);
}

Result<void> ProgramImporter::write_back(const ProgramGraph& graph, const std::string& written,
                                         const std::string& node_name) {
  const std::string* part = &written;
  while (const std::string* const base = viewed_by(*part)) {
    const auto found = scope_->names.find(*base);
    const ProgramMeaning& from = scope_->names.at(*part);
    if (found == scope_->names.end() || found->second.storage != from.storage) return {};
    bool missing = false;
    TRY(Value * old, value_of(*base, missing));
    if (missing || old == nullptr) return {};
    TRY(Value * whole, put_back(graph, *from.view, old, from.value, node_name));
    if (whole == nullptr) {
      for (const std::string* above = base; above != nullptr; above = viewed_by(*above)) {
        const auto last = scope_->last_use.find(*above);
        if (last == scope_->last_use.end() || last->second <= scope_->at) continue;
        return lacking("it writes into " + wire::quoted_name(*part) + ", which shares memory with " +
                           wire::quoted_name(*above) + " by " + short_target(from.view->target) + " and is read later.",
                       "Save exported_program.run_decompositions({}), which has no writes in place.");
      }
      return {};
    }
    scope_->names.at(*base).value = whole;
    part = base;
  }
  return {};
}

}  // namespace polyphase
