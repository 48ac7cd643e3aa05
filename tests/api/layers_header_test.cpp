// include/polyphase/network_layers.h is what the operators' definitions say.
#include "api/layers_header.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace polyphase {
namespace {

TEST(LayersHeader, IsUpToDate) {
  std::ifstream file(POLYPHASE_SOURCE_DIR "/include/polyphase/network_layers.h");
  std::stringstream header;
  header << file.rdbuf();
  EXPECT_TRUE(header.str() == layers_header(Registry::built_in()))
      << "include/polyphase/network_layers.h differs from the definitions. Run: cmake --build BUILD --target "
         "update_network_layers";
}

}  // namespace
}  // namespace polyphase
