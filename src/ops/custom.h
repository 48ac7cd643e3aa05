// CustomOperator: what stands behind the OpDef of a plugin's operator: its rule and its kernel, and whose it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/op.h"

namespace polyphase {

// How the kernel divides a call of concrete sizes.
struct CustomPlan {
  std::int64_t tiles = 1;
  std::size_t scratch_bytes = 0;  // of each running tile
};

// Operands and results of the kernel; row-major without gaps, absent operands with data == nullptr and rank 0.
struct CustomCall {
  const Attributes& attributes;
  std::span<const TensorView> inputs;
  std::span<const TensorView> outputs;
  std::uint64_t absent = 0;  // bit i: operand i is not there
};

class CustomOperator {
 public:
  virtual ~CustomOperator() = default;

  const std::string& plugin() const { return plugin_; }
  std::uint32_t version() const { return version_; }
  // "onnx DOMAIN OP_TYPE" and "torch LIBRARY.NAME.OVERLOAD": whose nodes are this operator (Registry::find_claim).
  const std::vector<std::string>& claims() const { return claims_; }

  virtual Result<std::vector<Type>> infer(const InferContext& context) const = 0;
  // Tensors need no data. Errors: the results are not of the sizes that the rule gives for these operands.
  virtual Result<CustomPlan> plan(const OpDef& op, const CustomCall& call) const = 0;
  virtual Result<void> run(const OpDef& op, const CustomCall& call, const CustomPlan& plan, std::int64_t tile,
                           std::byte* scratch) const = 0;

 protected:
  CustomOperator(std::string plugin, std::uint32_t version, std::vector<std::string> claims)
      : plugin_(std::move(plugin)), version_(version), claims_(std::move(claims)) {}

 private:
  std::string plugin_;
  std::uint32_t version_;
  std::vector<std::string> claims_;
};

std::string onnx_claim(std::string_view domain, std::string_view op_type);
std::string torch_claim(std::string_view overload);  // "mylib.upfirdn2d.default"

// The reference of such an operator: every tile in order, operands copied where they are not row-major.
Result<void> run_custom(const OpDef& op, const ReferenceContext& context);

}  // namespace polyphase
