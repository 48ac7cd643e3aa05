// Random bytes as the choice of an operator, operands and attributes: its shape rule and reference loops keep to what
// random_use.h asks of them.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>

#include "ops/random_use.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace polyphase;
  static const Registry registry = Registry::built_in();
  std::size_t at = 0;
  const auto next = [&] { return at < size ? std::uint64_t{bytes[at++]} : std::uint64_t{0}; };
  const auto& all = registry.all();
  auto chosen = all.begin();
  std::advance(chosen, static_cast<std::ptrdiff_t>((next() + 256 * next()) % all.size()));
  RandomUse use(*chosen->second, next);
  use.prepare();
  use.run();
  if (use.fault().empty()) return 0;
  std::fprintf(stderr, "shape_rules_fuzz: %s", use.fault().c_str());
  std::abort();
}
