// Prints docs/operators.md.
#include <cstdio>

#include "ops/documentation.h"

int main() {
  const std::string page = polyphase::document_operators(polyphase::Registry::built_in());
  return std::fwrite(page.data(), 1, page.size(), stdout) == page.size() ? 0 : 1;
}
