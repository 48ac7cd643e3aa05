// Lookup of operators by name.
#include "ops/registry.h"

namespace polyphase {

Registry Registry::built_in() {
  Registry out;
  for (OpDef& op : built_in_operators()) {
    const auto added = out.add(std::make_shared<const OpDef>(std::move(op)));
    CHECK(added.ok(), "two built-in operators share a name");
  }
  return out;
}

Result<void> Registry::add(std::shared_ptr<const OpDef> op) {
  const std::string name = op->name;
  if (!operators_.emplace(name, std::move(op)).second) {
    return Error{ErrorCode::invalid_argument, "an operator named '" + name + "' exists already.",
                 "Give the operator another name."};
  }
  return {};
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
