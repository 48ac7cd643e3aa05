// The constants of an engine while it is emitted: each is numbered at once, the bytes come at the end: packed on
// several threads, into memory, or into the engine's file as it grows.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/tasks.h"
#include "engine/engine.h"
#include "engine/engine_writer.h"
#include "kernel/row.h"
#include "kernel/target.h"
#include "lower/draft.h"

namespace polyphase {

// What a step packs: which operands, how, and from what.
struct Pack {
  const Packing* packing = nullptr;
  std::unique_ptr<Asked> asked = nullptr;
  std::vector<int> operands = {};
  std::vector<TensorView> views = {};
  std::vector<std::shared_ptr<Buffer>> sources = {};  // what holds them
  bool at_run = false;                                // some are computed
  std::string key = {};                               // what decides the bytes
  bool depends = false;                               // on weights
};

class Constants {
 public:
  struct Options {
    const Target* target = nullptr;
    const std::atomic<bool>* cancelled = nullptr;
    int threads = 1;
    EngineWriter* file = nullptr;  // null: into memory
  };
  explicit Constants(const Options& options) : options_(options) {}

  // Numbers to be exchanged by `make`. Equal bytes of equal format are kept once. Not so where they follow from weights
  // and would soon differ: there `source` says what they are, and the same sources are kept once; empty: no weight has
  // a say in them.
  int add_elements(std::string name, const Tensor& tensor, const std::string& source);
  // One for each Pack::key.
  int add_pack(std::string name, std::shared_ptr<const Pack> pack);
  bool has_source(const std::string& source) const { return by_source_.count(source) != 0; }

  // Makes `engine`'s constants, with bytes only where they are kept in memory; the result is each number's index among
  // them. What a pack is made of is let go as soon as it is made. Errors: out_of_memory, cancelled; io of the file.
  Result<std::vector<int>> make(Engine& engine);

 private:
  struct Wanted {
    std::string name;
    Tensor elements;                   // or
    std::shared_ptr<const Pack> pack;  // these; null once they are made
    std::string format;
    bool unique = false;  // whatever other bytes are
    std::size_t size_bytes = 0;
  };

  // Numbers [first, end), packed together.
  struct Batch {
    std::size_t first = 0;
    std::size_t end = 0;
    std::size_t packed_bytes = 0;
  };

  int add(Wanted wanted, const std::string& source);
  std::vector<Batch> batches() const;
  Task task_of(std::size_t number, std::shared_ptr<Buffer>& to);
  Result<void> into_memory(Engine& engine);
  Result<void> into_file(Engine& engine);
  Result<void> share_small(std::vector<std::shared_ptr<Buffer>>& made) const;
  Result<void> write_batch(const Batch& batch, Engine& engine);
  Result<void> settle(std::size_t number, std::span<const std::byte> bytes, std::shared_ptr<Buffer> owner,
                      Engine& engine);
  Result<bool> same(std::size_t index, std::span<const std::byte> bytes, const Engine& engine);
  std::uint64_t hash_of(std::span<const std::byte> bytes);

  Options options_;
  std::vector<Wanted> wanted_;
  std::vector<int> index_;                     // by number: among the engine's constants
  std::vector<std::shared_ptr<Buffer>> made_;  // by number: packs
  std::unordered_map<std::string, int> by_source_;
  std::unordered_map<std::string, int> by_key_;
  std::vector<std::size_t> sizes_;                               // by index
  std::unordered_multimap<std::size_t, std::size_t> by_sample_;  // indices
  std::unordered_map<const std::byte*, std::uint64_t> hashes_;   // by where the bytes are
};

}  // namespace polyphase
