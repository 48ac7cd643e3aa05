// Resolving an engine against a catalogue.
#include "runtime/program.h"

#include "runtime/program_parts.h"

namespace polyphase {

Error damaged_engine(const std::string& what) {
  return {ErrorCode::corrupt, "the engine contradicts itself: " + what + ".", "Compile the model again."};
}

Result<void> check_window(const TensorDesc& desc, std::int64_t offset, std::int64_t elements, const std::string& name) {
  if (desc.empty()) return {};
  std::int64_t low = offset;
  std::int64_t high = offset;
  bool inside = true;
  for (std::size_t i = 0; i < static_cast<std::size_t>(desc.rank); ++i) {
    std::int64_t reach = 0;
    inside = inside && !__builtin_mul_overflow(desc.sizes[i] - 1, desc.strides[i], &reach);
    std::int64_t& end = reach < 0 ? low : high;
    inside = inside && !__builtin_add_overflow(end, reach, &end);
  }
  if (!inside || low < 0 || high >= elements)
    return damaged_engine("the view '" + name + "' reaches beyond what it is a view of");
  return {};
}

namespace {

Result<void> check_cluster(Program& program) {
  if (program.engine->cluster == "portable") {
    program.target.portable = true;
    return {};
  }
  const auto cluster = cluster_from_name(program.engine->cluster);
  if (!cluster.has_value()) return damaged_engine("there is no cluster '" + program.engine->cluster + "'");
  if (*cluster > program.target.cluster) {
    return Error{ErrorCode::incompatible,
                 "the engine was compiled for " + program.engine->cluster + "; this CPU has " +
                     std::string(name_of(program.target.cluster)) + ".",
                 "Compile the model again on this machine, or with --target portable."};
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<const Program>> make_program(std::shared_ptr<const Engine> engine, const Target& target) {
  CHECK(engine != nullptr && target.catalogue != nullptr);
  auto program = std::make_shared<Program>();
  program->engine = std::move(engine);
  program->target = target;
  program->ranges = program->engine->symbols;
  TRY_VOID(check_cluster(*program));
  TRY_VOID(resolve_values(*program));
  TRY_VOID(resolve_blocks(*program));
  TRY(const auto levels, resolve_levels(*program));
  TRY_VOID(resolve_steps(*program, levels));
  return std::shared_ptr<const Program>(std::move(program));
}

}  // namespace polyphase
