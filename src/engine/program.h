// The program section: an Engine without its constants' bytes, as FlatBuffers.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/tensor.h"
#include "engine/engine.h"
#include "ops/registry.h"

namespace polyphase {

// Where each constant lies in the constants section.
struct ConstantPlace {
  std::uint64_t offset = 0;
  std::uint64_t size_bytes = 0;
};

// The operators of plugins that the engine's steps and recipes use, by name.
std::vector<const OpDef*> plugin_operators(const Engine& engine);

std::vector<std::byte> write_program(const Engine& engine, std::span<const ConstantPlace> places);

// Reads a program whose bytes nobody vouches for. Constants borrow from `file`, whose bytes [constants_offset, +
// constants_size) are the constants section. What is read is well formed, not yet consistent: check_engine comes next.
Result<Engine> read_program(std::span<const std::byte> program, const std::shared_ptr<Buffer>& file,
                            std::uint64_t constants_offset, std::uint64_t constants_size, const Registry& registry);

}  // namespace polyphase
