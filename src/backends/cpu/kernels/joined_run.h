// Parts of vectors, one behind the other, to whole vectors of memory: lines that lie behind each other in an image are
// written as one run, whatever their length and type, and can go past the caches.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/stored_image.h"
#include "backends/cpu/simd/vec.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

class JoinedRun {
 public:
  JoinedRun() = default;
  JoinedRun(StoredResult to, bool past_caches) : to_(to.data), type_(to.type), past_caches_(past_caches) {
    begun_ = broadcast(0.0F);
    begin_at(0);
    if (!to.wide()) return;  // unaligned, and through the caches
    const auto past = static_cast<int>(reinterpret_cast<uintptr_t>(to.data) / sizeof(float) % vec_width);
    to_ = (to + -past).data;
    first_ = past;
    begin_at(past);
    streams_ = past_caches && past == 0;
  }

  // The first `count` lanes: none, or up to a vector.
  POLYPHASE_INLINE void append(VecF x, int64_t count) {
    const VecF turned = pick(x, turn_);
    const VecF joined = select(less(lane(), begun_lanes_), begun_, turned);
    if (count >= vec_width) {
      put(joined);
      begun_ = turned;
    } else if (count > 0) {
      const int end = count_ + static_cast<int>(count);
      if (end >= vec_width) put(joined);
      begun_ = end >= vec_width ? turned : joined;
      begin_at(end % vec_width);
    }
  }

  // What is left of the last vector; the run is over.
  __attribute__((noinline)) void finish() {
    if (count_ > first_ && type_ == DType::f32) store_range(reinterpret_cast<float*>(to_), begun_, first_, count_);
    if (count_ > first_ && type_ != DType::f32) {
      float lanes[vec_width];
      store(lanes, begun_);
      store_elements(type_, lanes, to_, 1, count_);
    }
    first_ = count_;
  }

 private:
  static POLYPHASE_INLINE VecF lane() { return to_float(iota()); }

  POLYPHASE_INLINE void begin_at(int count) {
    count_ = count;
    begun_lanes_ = broadcast(static_cast<float>(count));
    turn_ = (iota() + broadcast(static_cast<int32_t>(vec_width - count))) & broadcast(int32_t{vec_width - 1});
  }

  // Calls nothing: the run stays in registers.
  POLYPHASE_INLINE void put(VecF x) {
    auto* const floats = reinterpret_cast<float*>(to_);
    auto* const halves = reinterpret_cast<uint16_t*>(to_);
    if (streams_) {
      stream(floats, x);
    } else if (type_ != DType::f32) {
      type_ == DType::f16 ? store_f16(halves, x) : store_bf16(halves, x);
    } else if (first_ > 0) {
      store_range(floats, x, first_, vec_width);
      first_ = 0;
      streams_ = past_caches_;
    } else {
      store(floats, x);
    }
    to_ += static_cast<int64_t>(type_ == DType::f32 ? sizeof(float) : sizeof(uint16_t)) * vec_width;
  }

  VecF begun_;        // lanes [first_, count_) of the vector at to_
  VecF begun_lanes_;  // how many
  VecI turn_;
  std::byte* to_ = nullptr;
  DType type_ = DType::f32;
  int count_ = 0;
  int first_ = 0;  // lanes in front of the run's first
  bool past_caches_ = false;
  bool streams_ = false;
};

// x without its first lanes.
POLYPHASE_INLINE VecF drop_lanes(VecF x, int64_t count) {
  return pick(x, (iota() + broadcast(static_cast<int32_t>(count))) & broadcast(int32_t{vec_width - 1}));
}

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
