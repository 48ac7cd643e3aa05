// The engine file (.ppe): write it, read it.
//
//   byte 0   ┌──────────────────────────────────────────────────────────────┐
//            │ 89 'P' 'P' 'E' 0D 0A 1A 0A      what a text transfer changes  │
//        8   │ u16 major, u16 minor            format version                │
//       12   │ u32 section count                                             │
//       16   │ u64 length of the whole file in bytes                         │
//       24   │ u64 XXH3 of header and table, these 8 bytes taken as 0        │
//       32   │ section table, 32 bytes a section:                            │
//            │   u32 kind, u32 flags (bit 0: a reader must know the kind),   │
//            │   u64 offset, u64 size, u64 XXH3 of its bytes                 │
//            ├─ 4096 ───────────────────────────────────────────────────────┤
//            │ kind 2, constants: each at a multiple of 64, borrowed from    │
//            │ the mapping as they lie                                       │
//            ├─ a multiple of 64 ───────────────────────────────────────────┤
//            │ kind 1, program: FlatBuffers, engine.fbs                      │
//            └──────────────────────────────────────────────────────────────┘
//
// Constants stand first so that they can be written before the program is known; a reader takes sections in any order.
// Little endian. Bytes between sections are 0 and checked to be. So every changed byte and every cut is refused before
// anything is believed; and what carries right checksums is still taken for hostile: FlatBuffers' verifier, then
// check_engine. A reader reads every minor of its major: a new minor only adds what older readers may ignore.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/tensor.h"
#include "engine/engine.h"
#include "ops/registry.h"

namespace polyphase {

inline constexpr std::uint16_t engine_format_major = 1;
inline constexpr std::uint16_t engine_format_minor = 1;

// Writes to a temporary name in the same folder, flushes it to the disk, renames: a reader sees the old file or the
// whole new one. The name is reused, so writers that are killed leave at most one file each that ran at the same time.
// The same engine gives the same bytes. Error(io): the path cannot be written, with the system's reason.
Result<void> write_engine(const Engine& engine, const std::string& path);

// The bytes that write_engine would write.
std::vector<std::byte> engine_bytes(const Engine& engine);

// Maps the file and checks it; constants are borrowed from the mapping, which lives as long as any of them. The file
// must not be changed in place meanwhile (replacing it by rename, as write_engine does, is fine). Error(io): cannot be
// opened. Error(corrupt): not an engine, truncated, damaged. Error(incompatible): of another major version.
Result<Engine> read_engine(const std::string& path, const Registry& registry);

// The same from memory, 64-byte aligned; `path` is for messages.
Result<Engine> read_engine_bytes(const std::shared_ptr<Buffer>& bytes, const std::string& path,
                                 const Registry& registry);

// Whether the file begins like an engine: to tell engines from models. False for what cannot be read.
bool is_engine_file(const std::string& path);

}  // namespace polyphase
