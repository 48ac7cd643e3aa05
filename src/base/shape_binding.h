// Binding: the sizes a caller brings give the symbols of the declared shapes their values.
#pragma once

#include <cstdint>
#include <span>

#include "base/dim.h"
#include "base/result.h"
#include "base/shape.h"
#include "base/subject.h"

namespace polyphase {

// Binds the plain symbols of `declared` to `sizes`, axis by axis, and checks rank, constants, ranges, and symbols bound
// before. Sizes that are expressions are checked by check_shape once everything is bound. `what` names the tensor in
// messages ("input 'x'").
Result<void> bind_shape(const Shape& declared, std::span<const std::int64_t> sizes, const Subject& what,
                        DimBindings& bindings);
// Binds symbols that stand only in expressions, such as H in 2*H + 1: the expression's slope gives a guess, which
// check_shape then tests. What cannot be guessed stays unbound.
void solve_shape(const Shape& declared, std::span<const std::int64_t> sizes, DimBindings& bindings);
// Every size of `declared` under the bindings equals the one found.
Result<void> check_shape(const Shape& declared, std::span<const std::int64_t> sizes, const Subject& what,
                         const DimBindings& bindings);

}  // namespace polyphase
