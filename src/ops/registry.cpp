// Lookup of operators by name.
#include "ops/registry.h"

#include "ops/custom.h"

namespace polyphase {

Registry Registry::built_in() {
  Registry out;
  for (OpDef& op : built_in_operators()) {
    const auto added = out.add(std::make_shared<const OpDef>(std::move(op)));
    CHECK(added.ok(), "two built-in operators share a name");
  }
  return out;
}

namespace {

Error claimed_twice(const std::string& claim, const OpDef& by, const OpDef& again) {
  return {ErrorCode::invalid_argument,
          "the plugins' operators '" + by.name + "' and '" + again.name + "' both claim the nodes '" + claim + "'.",
          "Give one of the two plugins only."};
}

}  // namespace

Result<void> Registry::add(std::shared_ptr<const OpDef> op) {
  const OpDef* const added = op.get();
  if (operators_.find(op->name) != operators_.end()) {
    return Error{ErrorCode::invalid_argument, "an operator named '" + op->name + "' exists already.",
                 "Give every plugin once; an operator that is another one needs another name."};
  }
  if (op->custom != nullptr) {
    for (const std::string& claim : op->custom->claims()) {
      const auto [place, fresh] = claims_.emplace(claim, added);
      if (!fresh) return claimed_twice(claim, *place->second, *added);
    }
  }
  operators_.emplace(added->name, std::move(op));
  return {};
}

const OpDef* Registry::find_claim(std::string_view claim) const {
  const auto found = claims_.find(claim);
  return found == claims_.end() ? nullptr : found->second;
}

const OpDef* Registry::find(std::string_view name) const {
  const auto found = operators_.find(name);
  return found == operators_.end() ? nullptr : found->second.get();
}

const OpDef& Registry::at(std::string_view name) const {
  const OpDef* op = find(name);
  CHECK(op != nullptr, "unknown operator name in our own code");
  return *op;
}

}  // namespace polyphase
