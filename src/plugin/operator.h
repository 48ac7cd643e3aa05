// PluginOperator: one operator of a plugin behind CustomOperator. What its callbacks give is checked before it is
// believed; what they throw becomes an Error.
#pragma once

#include <memory>

#include "ops/custom.h"
#include "polyphase/polyphase_op.h"

namespace polyphase {

class PluginOperator : public CustomOperator {
 public:
  PluginOperator(const polyphase_op& definition, const polyphase_op* given, std::string plugin,
                 std::vector<std::string> claims, std::shared_ptr<void> library)
      : CustomOperator(std::move(plugin), definition.version, std::move(claims)),
        definition_(definition),
        given_(given),
        library_(std::move(library)) {}

  Result<std::vector<Type>> infer(const InferContext& context) const override;
  Result<CustomPlan> plan(const OpDef& op, const CustomCall& call) const override;
  Result<void> run(const OpDef& op, const CustomCall& call, const CustomPlan& plan, std::int64_t tile,
                   std::byte* scratch) const override;

 private:
  polyphase_op definition_;
  const polyphase_op* given_;  // the plugin's own struct, as callbacks get it
  std::shared_ptr<void> library_;
};

}  // namespace polyphase
