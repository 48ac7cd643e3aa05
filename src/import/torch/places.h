// Places of elements: Python's slices, masks and lists of indices.
#pragma once

#include "base/result.h"
#include "import/compose/composer.h"
#include "import/torch/aten_node.h"

namespace polyphase {

// A place counted from the end becomes one from the beginning.
Dim from_begin(const Dim& place, const Dim& size);

// Arguments `dim`, `start`, `end` and `step` by Python's rules: places from the end where negative, clamped to the axis
// of x.
struct PythonSlice {
  int axis = 0;
  Dim start;
  Dim count;
  std::int64_t step = 1;
};
Result<PythonSlice> python_slice(AtenNode& node, const Composer& c, const Value* x);

// The indices of what is not 0, (rank of x, count): one column per element; the count is a size born from data.
Result<Value*> nonzero_columns(AtenNode& node, Value* x);

// x[:, i, j] as what gather_nd and scatter_nd take. The indexed axes of x come first, in order; what is left behind
// them.
struct IndexedAxes {
  Composer::Integers order;  // of the axes of x: those indexed, then the rest
  Values indices;            // one per indexed axis, i64, of one shape
  bool together = true;      // the indexed axes lie side by side: then the indices' axes stand there, else in front
};
// Masks become the indices of their true elements.
Result<IndexedAxes> indexed_axes(AtenNode& node, Composer& c, Value* x);
// (…, k): one tuple of indices per element of their common shape.
Value* index_tuples(Composer& c, const IndexedAxes& axes);
// Axes of a result that begins with the indices' `leading` axes, in the order of x's; and back.
Composer::Integers result_order(const IndexedAxes& axes, int leading, int rank);

}  // namespace polyphase
