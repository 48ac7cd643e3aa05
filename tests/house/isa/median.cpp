// A second source of each cluster, which shares inline library code with rows.cpp.
#include <algorithm>
#include <vector>

#include "rows.h"

namespace polyphase::house {

float median_of(const float* values, std::size_t count) {
  std::vector<float> sorted(values, values + count);
  std::sort(sorted.begin(), sorted.end());
  return sorted[count / 2];
}

}  // namespace polyphase::house
