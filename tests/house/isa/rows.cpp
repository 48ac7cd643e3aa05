// Sample kernels, compiled once per cluster: a loop worth vectorising and inline library code that must not leak.
#include "rows.h"

#include <algorithm>
#include <vector>

#define HOUSE_JOIN_(a, b) a##b
#define HOUSE_JOIN(a, b) HOUSE_JOIN_(a, b)
#define HOUSE_TEXT_(a) #a
#define HOUSE_TEXT(a) HOUSE_TEXT_(a)

namespace polyphase::house {
namespace {

float dot(const float* a, const float* b, std::size_t count) {
  std::vector<float> products(count);
  for (std::size_t i = 0; i < count; ++i) products[i] = a[i] * b[i];
  std::sort(products.begin(), products.end());
  float sum = 0;
  for (const float product : products) sum += product;
  return sum;
}

}  // namespace
}  // namespace polyphase::house

extern "C" const polyphase::house::SampleRows HOUSE_JOIN(house_rows_, POLYPHASE_CLUSTER) = {
    HOUSE_TEXT(POLYPHASE_CLUSTER), polyphase::house::dot, polyphase::house::median_of};
