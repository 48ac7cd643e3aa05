// Packs on all threads; equal bytes once; into the file by two windows in turn: one is packed while the other is
// written.
#include "lower/constants.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "engine/file_header.h"

namespace polyphase {
namespace {

std::span<const std::byte> bytes_of(const Tensor& tensor) {
  const auto count = static_cast<std::size_t>(tensor.view().element_count());
  return {tensor.view().data, count * size_bytes(tensor.dtype())};
}

std::size_t rounded(std::size_t size) { return (size + 63) / 64 * 64; }

// Tells most constants apart without reading them whole.
std::size_t sample_of(std::span<const std::byte> bytes) {
  constexpr std::size_t pieces = 64;
  constexpr std::size_t piece = 64;
  const std::string_view whole(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (whole.size() <= pieces * piece) return std::hash<std::string_view>()(whole);
  std::string some = std::to_string(whole.size());
  for (std::size_t i = 0; i < pieces; ++i) some += whole.substr((whole.size() - piece) / (pieces - 1) * i, piece);
  return std::hash<std::string>()(some);
}

}  // namespace

// ---------------------------------------------------------------- what is wanted

int Constants::add(Wanted wanted, const std::string& source) {
  const int number = static_cast<int>(wanted_.size());
  if (!source.empty()) {
    const auto [known, fresh] = by_source_.emplace(source, number);
    if (!fresh) return known->second;
    wanted.unique = true;
  }
  wanted_.push_back(std::move(wanted));
  return number;
}

int Constants::add_elements(std::string name, const Tensor& tensor, const std::string& source) {
  return add({.name = std::move(name),
              .elements = tensor,
              .pack = nullptr,
              .format = {},
              .size_bytes = bytes_of(tensor).size()},
             source);
}

int Constants::add_pack(std::string name, std::shared_ptr<const Pack> pack) {
  const auto [known, fresh] = by_key_.emplace(pack->key, static_cast<int>(wanted_.size()));
  if (!fresh) return known->second;
  const std::size_t size = pack->packing->size_bytes(pack->asked->desc, *options_.target);
  const std::string source = pack->depends ? pack->key : std::string();
  std::string format(pack->packing->format);
  return add({.name = std::move(name),
              .elements = {},
              .pack = std::move(pack),
              .format = std::move(format),
              .size_bytes = size},
             source);
}

// ---------------------------------------------------------------- their bytes

Result<std::vector<int>> Constants::make(Engine& engine) {
  index_.assign(wanted_.size(), -1);
  TRY_VOID(options_.file == nullptr ? into_memory(engine) : into_file(engine));
  return std::move(index_);
}

// Into `to`, which it allocates where it is null.
Task Constants::task_of(std::size_t number, std::shared_ptr<Buffer>& to) {
  Wanted& wanted = wanted_[number];
  return {[this, &to, size = wanted.size_bytes]() -> Result<std::int64_t> {
            if (options_.cancelled != nullptr && options_.cancelled->load(std::memory_order_relaxed)) {
              return Error{ErrorCode::cancelled, "the compilation was cancelled.", "Compile again to have the engine."};
            }
            if (to == nullptr) {
              TRY(to, Buffer::allocate_raw(size));
            }
            return shares_of_pack(size);
          },
          [this, &to, pack = std::move(wanted.pack)](std::int64_t share, std::int64_t count) {
            pack->packing->pack(pack->asked->desc, *options_.target, pack->views, {share, count}, to->data());
          }};
}

// Small ones share a block, since pages of a large block cost little; the others get one each when their turn comes,
// which may be the memory of weights that have been packed.
Result<void> Constants::share_small(std::vector<std::shared_ptr<Buffer>>& made) const {
  constexpr std::size_t large = std::size_t{4} << 20;
  std::size_t together = 0;
  for (const Wanted& wanted : wanted_)
    together += wanted.pack != nullptr && wanted.size_bytes < large ? rounded(wanted.size_bytes) : 0;
  TRY(const auto shared, Buffer::allocate_raw(together));
  std::byte* next = shared->data();
  for (std::size_t i = 0; i < wanted_.size(); ++i) {
    if (wanted_[i].pack == nullptr || wanted_[i].size_bytes >= large) continue;
    made[i] = Buffer::borrow(shared, next, wanted_[i].size_bytes);
    next += rounded(wanted_[i].size_bytes);
  }
  return {};
}

Result<void> Constants::into_memory(Engine& engine) {
  made_.assign(wanted_.size(), nullptr);
  TRY_VOID(share_small(made_));
  std::vector<Task> tasks;
  std::size_t size = 0;
  for (std::size_t i = 0; i < wanted_.size(); ++i) {
    if (wanted_[i].pack == nullptr) continue;
    tasks.push_back(task_of(i, made_[i]));
    size += wanted_[i].size_bytes;
  }
  TRY_VOID(run_tasks(std::move(tasks), shares_of_pack(size) == 1 ? 1 : options_.threads));
  for (std::size_t i = 0; i < wanted_.size(); ++i) {
    const Tensor& elements = wanted_[i].elements;
    if (made_[i] == nullptr) {
      const auto bytes = bytes_of(elements);
      // Weights are views of the model's file, which aligns nothing.
      if (reinterpret_cast<std::uintptr_t>(bytes.data()) % 64 == 0) {
        made_[i] = Buffer::borrow(elements.buffer(), bytes.data(), bytes.size());
      } else {
        TRY(made_[i], Buffer::allocate_raw(bytes.size()));
        if (!bytes.empty()) std::memcpy(made_[i]->data(), bytes.data(), bytes.size());
      }
    }
    TRY_VOID(settle(i, {made_[i]->data(), made_[i]->size_bytes()}, made_[i], engine));
  }
  return {};
}

// Small enough to stay in the caches' neighbourhood, large enough for all threads; a larger pack is a batch of its own.
std::vector<Constants::Batch> Constants::batches() const {
  constexpr std::size_t most_bytes = std::size_t{16} << 20;
  std::vector<Batch> out;
  for (std::size_t i = 0; i < wanted_.size(); ++i) {
    const std::size_t packed = wanted_[i].pack == nullptr ? 0 : rounded(wanted_[i].size_bytes);
    if (out.empty() || (out.back().packed_bytes != 0 && out.back().packed_bytes + packed > most_bytes))
      out.push_back({i, i, 0});
    out.back().end = i + 1;
    out.back().packed_bytes += packed;
  }
  return out;
}

Result<void> Constants::into_file(Engine& engine) {
  made_.assign(wanted_.size(), nullptr);
  const std::vector<Batch> all = batches();
  std::array<std::size_t, 2> most = {0, 0};
  for (std::size_t b = 0; b < all.size(); ++b) most[b % 2] = std::max(most[b % 2], all[b].packed_bytes);
  std::array<std::shared_ptr<Buffer>, 2> windows;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    TRY(windows[i], Buffer::allocate_brief(most[i]));
  }
  for (std::size_t b = 0; b <= all.size(); ++b) {
    std::vector<Task> tasks;
    std::size_t size = 0;
    if (b > 0) {
      const Batch& last = all[b - 1];
      tasks.push_back({[this, &last, &engine]() -> Result<std::int64_t> {
        TRY_VOID(write_batch(last, engine));
        return 0;
      }});
      size += last.packed_bytes;
    }
    std::byte* to = windows[b % 2]->data();
    for (std::size_t i = b < all.size() ? all[b].first : 0; b < all.size() && i < all[b].end; ++i) {
      if (wanted_[i].pack == nullptr) continue;
      made_[i] = Buffer::borrow(windows[b % 2], to, wanted_[i].size_bytes);
      tasks.push_back(task_of(i, made_[i]));
      to += rounded(wanted_[i].size_bytes);
    }
    if (b < all.size()) size += all[b].packed_bytes;
    TRY_VOID(run_tasks(std::move(tasks), shares_of_pack(size) == 1 ? 1 : options_.threads));
  }
  return {};
}

Result<void> Constants::write_batch(const Batch& batch, Engine& engine) {
  for (std::size_t i = batch.first; i < batch.end; ++i) {
    const bool is_pack = made_[i] != nullptr;
    TRY_VOID(settle(
        i,
        is_pack ? std::span<const std::byte>(made_[i]->data(), made_[i]->size_bytes()) : bytes_of(wanted_[i].elements),
        nullptr, engine));
  }
  return {};
}

// ---------------------------------------------------------------- equal bytes once

Result<void> Constants::settle(std::size_t number, std::span<const std::byte> bytes, std::shared_ptr<Buffer> owner,
                               Engine& engine) {
  const Wanted& wanted = wanted_[number];
  if (!wanted.unique) {
    const std::size_t sample = sample_of(bytes) ^ std::hash<std::string>()(wanted.format);
    const auto [first, last] = by_sample_.equal_range(sample);
    for (auto other = first; other != last; ++other) {
      if (engine.constants[other->second].format != wanted.format) continue;
      TRY(const bool is_same, same(other->second, bytes, engine));
      if (!is_same) continue;
      index_[number] = static_cast<int>(other->second);
      return {};
    }
    by_sample_.emplace(sample, engine.constants.size());
  }
  if (options_.file != nullptr) TRY_VOID(options_.file->add(bytes));
  index_[number] = static_cast<int>(engine.constants.size());
  sizes_.push_back(bytes.size());
  engine.constants.push_back({wanted.name, std::move(owner), wanted.format});
  return {};
}

// Of those whose samples are equal.
Result<bool> Constants::same(std::size_t index, std::span<const std::byte> bytes, const Engine& engine) {
  if (sizes_[index] != bytes.size()) return false;
  if (bytes.empty()) return true;
  if (options_.file == nullptr) {
    const std::span<const std::byte> other(engine.constants[index].bytes->data(), bytes.size());
    return hash_of(other) == hash_of(bytes) && std::memcmp(bytes.data(), other.data(), bytes.size()) == 0;
  }
  std::vector<std::byte> other(std::min(bytes.size(), std::size_t{1} << 18));
  for (std::size_t at = 0; at < bytes.size(); at += other.size()) {
    const auto piece = bytes.subspan(at, std::min(other.size(), bytes.size() - at));
    TRY_VOID(options_.file->read(index, at, std::span(other).first(piece.size())));
    if (std::memcmp(piece.data(), other.data(), piece.size()) != 0) return false;
  }
  return true;
}

std::uint64_t Constants::hash_of(std::span<const std::byte> bytes) {
  const auto [known, fresh] = hashes_.emplace(bytes.data(), 0);
  if (fresh) known->second = checksum_of(bytes);
  return known->second;
}

}  // namespace polyphase
