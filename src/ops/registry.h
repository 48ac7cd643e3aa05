// Registry: the operators one compilation knows, by name: the built-in list and whatever plugins add. A value, never a
// global.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ops/op.h"

namespace polyphase {

class Registry {
 public:
  // The operators of list.cpp.
  static Registry built_in();

  Result<void> add(std::shared_ptr<const OpDef> op);  // Error: the name is taken, or a claim of the operator's
  const OpDef* find(std::string_view name) const;     // null: unknown
  const OpDef& at(std::string_view name) const;       // CHECKs that it is there: for names written in our own code
  // The plugin's operator that nodes of this name in a model are (ops/custom.h); null: nobody claims them.
  const OpDef* find_claim(std::string_view claim) const;
  const std::map<std::string, const OpDef*, std::less<>>& claims() const { return claims_; }
  const std::map<std::string, std::shared_ptr<const OpDef>, std::less<>>& all() const { return operators_; }

 private:
  std::map<std::string, std::shared_ptr<const OpDef>, std::less<>> operators_;
  std::map<std::string, const OpDef*, std::less<>> claims_;
};

// The built-in definitions (list.cpp), one line per operator or family.
std::vector<OpDef> built_in_operators();

}  // namespace polyphase
