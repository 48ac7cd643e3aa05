// Complex numbers as pairs: floats with a last axis (real part, imaginary part) more than the program's tensor has.
#pragma once

#include "import/compose/composer.h"
#include "import/torch/aten_node.h"

namespace polyphase {

// Both of the shape that the program's tensor has.
struct ComplexParts {
  Value* real = nullptr;
  Value* imaginary = nullptr;
};

// The operands of a `joined` are found again, so that nothing is taken apart that was just put together.
ComplexParts parts_of(Composer& c, Value* pairs);
Value* joined(Composer& c, const ComplexParts& parts);
// Known to be 0 everywhere.
bool is_nothing(const Value* value);
Value* nothing_like(Composer& c, Value* value);

// A tensor or number as pairs of the dtype; real ones get imaginary parts of 0. A number becomes one pair.
Value* as_pairs(AtenNode& node, Composer& c, std::string_view parameter, DType dtype);
Value* as_pairs(Composer& c, Value* value, bool is_complex, DType dtype);

// The rank that the program's tensor has.
int program_rank(AtenNode& node, std::string_view parameter);

Value* magnitude(Composer& c, Value* pairs);
Value* product(Composer& c, Value* a, Value* b);  // of pairs

// atan(y / x), in the half plane that the signs say.
Value* angle_of(Composer& c, Value* y, Value* x);

}  // namespace polyphase
