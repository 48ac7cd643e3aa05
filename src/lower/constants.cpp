// Packs on all threads; equal bytes once; into the file by two windows in turn: one is packed while the other is
// written.
#include "lower/constants.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <string_view>

#include "engine/file_header.h"

namespace polyphase {
namespace {

std::span<const std::byte> elements_of(const Tensor& tensor) {
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

// Large ones are blocks of their own; the others share one, since pages of a large block cost little.
Result<std::vector<std::shared_ptr<Buffer>>> buffers_of(const std::vector<std::size_t>& sizes) {
  constexpr std::size_t large = std::size_t{4} << 20;
  std::size_t together = 0;
  for (const std::size_t size : sizes) together += size < large ? rounded(size) : 0;
  TRY(const auto shared, Buffer::allocate_raw(together));
  std::vector<std::shared_ptr<Buffer>> out;
  std::byte* next = shared->data();
  for (const std::size_t size : sizes) {
    if (size >= large) {
      TRY(auto own, Buffer::allocate_raw(size));
      out.push_back(std::move(own));
    } else {
      out.push_back(Buffer::borrow(shared, next, size));
      next += rounded(size);
    }
  }
  return out;
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
  return add({.name = std::move(name), .elements = tensor, .pack = nullptr, .size_bytes = elements_of(tensor).size()},
             source);
}

int Constants::add_pack(std::string name, std::shared_ptr<const Pack> pack) {
  const auto [known, fresh] = by_key_.emplace(pack->key, static_cast<int>(wanted_.size()));
  if (!fresh) return known->second;
  const std::size_t size = pack->packing->size_bytes(pack->asked->desc, *options_.target);
  const std::string source = pack->depends ? pack->key : std::string();
  return add({.name = std::move(name), .elements = {}, .pack = std::move(pack), .size_bytes = size}, source);
}

// ---------------------------------------------------------------- their bytes

Result<std::vector<int>> Constants::make(Engine& engine) {
  index_.assign(wanted_.size(), -1);
  TRY_VOID(options_.file == nullptr ? into_memory(engine) : into_file(engine));
  return std::move(index_);
}

Task Constants::task_of(std::size_t number, std::byte* to) const {
  const Wanted& wanted = wanted_[number];
  return {[this, shares = shares_of_pack(wanted.size_bytes)]() -> Result<std::int64_t> {
            if (options_.cancelled != nullptr && options_.cancelled->load(std::memory_order_relaxed)) {
              return Error{ErrorCode::cancelled, "the compilation was cancelled.", "Compile again to have the engine."};
            }
            return shares;
          },
          [this, pack = wanted.pack, to](std::int64_t share, std::int64_t count) {
            pack->packing->pack(pack->asked->desc, *options_.target, pack->views, {share, count}, to);
          }};
}

Result<void> Constants::into_memory(Engine& engine) {
  std::vector<std::size_t> sizes;
  for (const Wanted& wanted : wanted_) {
    if (wanted.pack != nullptr) sizes.push_back(wanted.size_bytes);
  }
  TRY(const auto buffers, buffers_of(sizes));
  std::vector<std::shared_ptr<Buffer>> by_number(wanted_.size());
  std::vector<Task> tasks;
  for (std::size_t i = 0; i < wanted_.size(); ++i) {
    if (wanted_[i].pack == nullptr) continue;
    by_number[i] = buffers[tasks.size()];
    tasks.push_back(task_of(i, by_number[i]->data()));
  }
  const std::size_t size = std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
  TRY_VOID(run_tasks(std::move(tasks), shares_of_pack(size) == 1 ? 1 : options_.threads));
  for (std::size_t i = 0; i < wanted_.size(); ++i) {
    const Tensor& elements = wanted_[i].elements;
    if (by_number[i] == nullptr) {
      const auto bytes = elements_of(elements);
      // Weights are views of the model's file, which aligns nothing.
      if (reinterpret_cast<std::uintptr_t>(bytes.data()) % 64 == 0) {
        by_number[i] = Buffer::borrow(elements.buffer(), bytes.data(), bytes.size());
      } else {
        TRY(by_number[i], Buffer::allocate_raw(bytes.size()));
        if (!bytes.empty()) std::memcpy(by_number[i]->data(), bytes.data(), bytes.size());
      }
    }
    TRY_VOID(settle(i, {by_number[i]->data(), by_number[i]->size_bytes()}, by_number[i], engine));
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
  const std::vector<Batch> all = batches();
  std::array<std::size_t, 2> most = {0, 0};
  for (std::size_t b = 0; b < all.size(); ++b) most[b % 2] = std::max(most[b % 2], all[b].packed_bytes);
  std::array<std::shared_ptr<Buffer>, 2> windows;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    TRY(windows[i], Buffer::allocate_raw(most[i]));
  }
  for (std::size_t b = 0; b <= all.size(); ++b) {
    std::vector<Task> tasks;
    std::size_t size = 0;
    if (b > 0) {
      const Batch& last = all[b - 1];
      tasks.push_back({[this, &last, &engine, packed = windows[(b - 1) % 2]->data()]() -> Result<std::int64_t> {
        TRY_VOID(write_batch(last, packed, engine));
        return 0;
      }});
      size += last.packed_bytes;
    }
    std::byte* to = windows[b % 2]->data();
    for (std::size_t i = b < all.size() ? all[b].first : 0; b < all.size() && i < all[b].end; ++i) {
      if (wanted_[i].pack == nullptr) continue;
      tasks.push_back(task_of(i, to));
      to += rounded(wanted_[i].size_bytes);
    }
    if (b < all.size()) size += all[b].packed_bytes;
    TRY_VOID(run_tasks(std::move(tasks), shares_of_pack(size) == 1 ? 1 : options_.threads));
  }
  return {};
}

Result<void> Constants::write_batch(const Batch& batch, const std::byte* packed, Engine& engine) {
  for (std::size_t i = batch.first; i < batch.end; ++i) {
    const Wanted& wanted = wanted_[i];
    if (wanted.pack == nullptr) {
      TRY_VOID(settle(i, elements_of(wanted.elements), nullptr, engine));
    } else {
      TRY_VOID(settle(i, {packed, wanted.size_bytes}, nullptr, engine));
      packed += rounded(wanted.size_bytes);
    }
  }
  return {};
}

// ---------------------------------------------------------------- equal bytes once

Result<void> Constants::settle(std::size_t number, std::span<const std::byte> bytes, std::shared_ptr<Buffer> owner,
                               Engine& engine) {
  const Wanted& wanted = wanted_[number];
  const std::string format = wanted.pack == nullptr ? "" : std::string(wanted.pack->packing->format);
  if (!wanted.unique) {
    const std::size_t sample = sample_of(bytes) ^ std::hash<std::string>()(format);
    const auto [first, last] = by_sample_.equal_range(sample);
    for (auto other = first; other != last; ++other) {
      if (engine.constants[other->second].format != format) continue;
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
  engine.constants.push_back({wanted.name, std::move(owner), format});
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
