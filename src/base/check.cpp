// Reports a broken invariant and aborts.
#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace polyphase {

void check_failed(const char* file, int line, const char* condition, const char* why) {
  std::fprintf(stderr, "polyphase: internal error at %s:%d: %s does not hold. %s\n", file, line, condition, why);
  std::fprintf(stderr,
               "This is a defect of Polyphase, not of your model; please report it with the model or a cut of it.\n");
  std::abort();
}

}  // namespace polyphase
