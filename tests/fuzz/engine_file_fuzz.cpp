// Random bytes as an engine file. Checksums, length and magic are made right first, as an attacker would: what is
// behind them must be refused with an Error, or run inside its memory and time.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>

#include "backends/cpu/catalogue.h"
#include "engine/file.h"
#include "engine/file_header.h"
#include "runtime/refit.h"
#include "runtime/session.h"

namespace polyphase {
namespace {

template <typename T>
T at(std::span<const std::byte> bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

void make_right(std::span<std::byte> bytes) {
  if (bytes.size() < engine_header_bytes) return;
  std::memcpy(bytes.data(), engine_magic.data(), engine_magic.size());
  const std::uint64_t length = bytes.size();
  std::memcpy(bytes.data() + 16, &length, sizeof(length));
  const std::size_t sections = std::min<std::size_t>(at<std::uint32_t>(bytes, 12), 4);
  std::size_t end = engine_header_bytes;
  for (std::size_t i = 0; i < sections && end + engine_section_entry_bytes <= bytes.size(); ++i) {
    const auto offset = at<std::uint64_t>(bytes, end + 8);
    const auto size_bytes = at<std::uint64_t>(bytes, end + 16);
    if (offset <= bytes.size() && size_bytes <= bytes.size() - offset) {
      const std::uint64_t sum = checksum_of(bytes.subspan(offset, size_bytes));
      std::memcpy(bytes.data() + end + 24, &sum, sizeof(sum));
    }
    end += engine_section_entry_bytes;
  }
  std::memset(bytes.data() + 24, 0, 8);
  const std::uint64_t sum = checksum_of(bytes.first(end));
  std::memcpy(bytes.data() + 24, &sum, sizeof(sum));
}

// Other weights, all zeros.
void refit_all(const std::shared_ptr<const Engine>& engine, const Target& target) {
  std::vector<Tensor> tensors;
  std::vector<NewWeight> weights;
  std::int64_t total = 0;
  for (const EngineWeight& weight : engine->recipes.weights) {
    const Type type = weight.type();
    total += std::min<std::int64_t>(type.shape.element_count().constant().value_or(1 << 20), 1 << 20);
    if (total > 65536) return;
    auto tensor = Tensor::allocate(weight.dtype, weight.sizes);
    if (!tensor.ok()) return;
    tensors.push_back(*tensor);
    weights.push_back({weight.names.front(), tensors.back().view()});
  }
  (void)refit(engine, target, weights, 1);
}

// Every symbol its least value, so that what can run is small.
void run(Session& session) {
  const Engine& engine = *session.program().engine;
  DimBindings bindings;
  for (const auto& [name, range] : engine.symbols) bindings.emplace(name, std::max<std::int64_t>(range.low, 1));
  RunRequest request;
  std::vector<Tensor> inputs;
  for (const EnginePort& port : engine.inputs) {
    const Type& type = engine.values[static_cast<std::size_t>(port.value)].type;
    const auto sizes = type.shape.evaluate(bindings);
    if (!sizes.has_value()) return;
    std::int64_t count = 1;
    for (const std::int64_t size : *sizes) {
      if (size < 0 || size > 4096 || (count *= std::max<std::int64_t>(size, 1)) > 65536) return;
    }
    auto tensor = Tensor::allocate(type.dtype, *sizes);
    if (!tensor.ok()) return;
    inputs.push_back(*tensor);
    request.inputs.push_back(inputs.back().view());
  }
  request.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  (void)session.run(request);
}

}  // namespace
}  // namespace polyphase

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace polyphase;
  static const Registry registry = Registry::built_in();
  static const Catalogue catalogue(cpu::rows_of(Cluster::scalar), registry);
  auto buffer = Buffer::allocate(size);
  if (!buffer.ok()) return 0;
  std::memcpy((*buffer)->data(), bytes, size);
  make_right({(*buffer)->data(), size});
  auto read = read_engine_bytes(*buffer, "fuzz.ppe", registry);
  if (!read.ok()) return 0;
  const auto engine = std::make_shared<const Engine>(std::move(*read));
  refit_all(engine, cpu::target_of(Cluster::scalar, engine->cluster == "portable", catalogue));
  const auto program = make_program(engine, cpu::target_of(Cluster::scalar, true, catalogue));
  if (!program.ok()) return 0;
  Session session(*program, {.threads = 1, .memory_limit_bytes = std::uint64_t{64} << 20});
  run(session);
  return 0;
}
