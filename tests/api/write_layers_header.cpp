// Prints include/polyphase/network_layers.h.
#include <cstdio>

#include "api/layers_header.h"

int main() {
  const std::string header = polyphase::layers_header(polyphase::Registry::built_in());
  return std::fwrite(header.data(), 1, header.size(), stdout) == header.size() ? 0 : 1;
}
