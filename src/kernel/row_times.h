// RowTimes: measured times of rows. Where a compilation has them, they stand in for the rows' own estimates.
#pragma once

#include <vector>

#include "kernel/row.h"

namespace polyphase {

class RowTimes {
 public:
  virtual ~RowTimes() = default;
  // Seconds of one run of each of the rows, all of which take the step, in their order; empty: they are not known, and
  // the estimates stay: of one step's rows all are measured or none. Every size of the step is a number.
  virtual std::vector<double> seconds(const StepDesc& desc, const std::vector<const Row*>& rows,
                                      const Target& target) = 0;
};

}  // namespace polyphase
