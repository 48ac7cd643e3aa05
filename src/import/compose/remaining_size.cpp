// Crosses out equal factors before it divides.
#include "import/compose/remaining_size.h"

#include <algorithm>
#include <numeric>

namespace polyphase {

Dim remaining_size(std::vector<Dim> all, const std::vector<Dim>& known) {
  Dim divisor(1);
  for (const Dim& size : known) {
    const auto same = std::find(all.begin(), all.end(), size);
    if (same != all.end() && !(size == 0)) {
      all.erase(same);
    } else {
      divisor *= size;
    }
  }
  // Integer factors next: 64·H / 16 is 4·H.
  std::int64_t left = divisor.is_constant() ? divisor.value() : 1;
  for (Dim& size : all) {
    if (left <= 1 || !size.is_constant() || size.value() <= 0) continue;
    const std::int64_t shared = std::gcd(size.value(), left);
    size = Dim(size.value() / shared);
    left /= shared;
  }
  Dim total(1);
  for (const Dim& size : all) total *= size;
  if (divisor.is_constant() && divisor.value() > 0) divisor = Dim(left);
  return divisor == 1 ? total : floor_div(total, divisor);
}

}  // namespace polyphase
