// Parts of vectors, one behind the other, to whole vectors of memory: lines that lie behind each other in an image are
// written as one run, whatever their length: in f32, which can go past the caches, or in f16.
#pragma once

#include <cstdint>
#include <type_traits>

#include "backends/cpu/simd/vec.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

// Whether there are runs of f16: where vectors are short, small code matters more.
inline constexpr bool joins_halves = vec_width > 4;

template <bool wide>
class JoinedRun {
 public:
  using Element = std::conditional_t<wide, float, uint16_t>;

  JoinedRun() = default;
  JoinedRun(Element* to, bool past_caches) : past_caches_(past_caches) {
    // Halves are stored unaligned.
    const int past = wide ? static_cast<int>(reinterpret_cast<uintptr_t>(to) / sizeof(Element) % vec_width) : 0;
    to_ = to - past;
    first_ = past;
    begun_ = broadcast(0.0F);
    begin_at(past);
    streams_ = wide && past_caches && past == 0;
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
  void finish() {
    if (count_ > first_) {
      if constexpr (wide) {
        store_range(to_, begun_, first_, count_);
      } else {
        store_f16_first(to_, begun_, count_);
      }
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

  POLYPHASE_INLINE void put(VecF x) {
    if constexpr (!wide) {
      store_f16(to_, x);
    } else if (streams_) {
      stream(to_, x);
    } else if (first_ > 0) {
      store_range(to_, x, first_, vec_width);
      first_ = 0;
      streams_ = past_caches_;
    } else {
      store(to_, x);
    }
    to_ += vec_width;
  }

  VecF begun_;        // lanes [first_, count_) of the vector at to_
  VecF begun_lanes_;  // how many
  VecI turn_;
  Element* to_ = nullptr;
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
