// docs/operators.md is what the definitions say.
#include "ops/documentation.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace polyphase {
namespace {

TEST(Documentation, PageIsUpToDate) {
  std::ifstream file(POLYPHASE_SOURCE_DIR "/docs/operators.md");
  std::stringstream page;
  page << file.rdbuf();
  EXPECT_TRUE(page.str() == document_operators(Registry::built_in()))
      << "docs/operators.md differs from the definitions. Run: cmake --build BUILD --target update_operator_docs";
}

}  // namespace
}  // namespace polyphase
