// One line of a .cases file: an operator with operands and attributes, endings after it, and how exact its kernels must
// be.
//
//   conv_transpose x=f32[1,3,5,5] w=f32[3,4,3,3] b=f32[4] stride=[2,2] dilation=[1,1] pre=[1,1] post=[0,1] then relu
//   gather x=f32[5,4] indices=i64[3]@-5..4 axis=0
//   add x=f32[2]{1,2} y=f32[2]{3,4} then sigmoid ulp=4
//
// Operands go by the names in the operator's list; a variadic one is repeated. Elements are seeded integers: -4..4, or
// the range after '@'; `@-64..64/16` divides them by 16; {…} writes them out. An ending's first operand is the running
// value, its others are written like the operator's, and one left out has the running value's type. What stands before
// a convolution begins its step: `cast x=f16[1,3,5] to=f32 then conv_transpose w=f32[3,4,3] …`. Settings: ulp=N and
// tolerance=T (of the largest magnitude) loosen the comparison, which is otherwise exact;
// layout=row_major|channels_last keeps to that layout; seed=N.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ops/registry.h"

namespace polyphase::test {

struct CaseOperand {
  bool running = false;       // an ending's running value
  bool like_running = false;  // an ending's operand that was not written: the running value's type
  DType dtype = DType::f32;
  std::vector<std::int64_t> sizes;
  std::int64_t low = -4;
  std::int64_t high = 4;
  std::int64_t divisor = 1;
  std::vector<double> values;  // written out; empty: seeded
};

struct CasePart {
  const OpDef* op = nullptr;
  Attributes attributes;                             // complete
  std::vector<std::optional<CaseOperand>> operands;  // by the operator's list; nothing: absent
};

struct Case {
  std::string line;
  std::vector<CasePart> parts;  // the operator, then the endings
  double ulp = 0;
  double tolerance = 0;
  std::string layout;  // empty: every one that makes sense
  std::uint64_t seed = 1;
};

Result<Case> parse_case(const std::string& line, const Registry& registry);

// A row-major tensor of the operand's elements.
Tensor make_tensor(const CaseOperand& operand, std::uint64_t seed);

}  // namespace polyphase::test
