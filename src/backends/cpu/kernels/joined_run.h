// Parts of vectors, one behind the other, to whole vectors of memory: lines that lie behind each other in an image are
// written as one run, whatever their length: in f32, which can go past the caches, or in f16 or bf16.
#pragma once

#include <cstdint>
#include <type_traits>

#include "backends/cpu/simd/vec.h"

namespace polyphase::cpu::POLYPHASE_CLUSTER {

// Whether there are runs of two bytes an element: where vectors are short, small code matters more.
inline constexpr bool joins_narrow = vec_width > 4;

// `wide`: f32; otherwise f16 (`half`) or bf16, which is said at each call: kept with the run, it would take the run's
// state out of the registers.
template <bool wide>
class JoinedRun {
 public:
  using Element = std::conditional_t<wide, float, uint16_t>;

  JoinedRun() = default;
  JoinedRun(Element* to, bool past_caches) : past_caches_(past_caches) {
    // Two bytes an element are stored unaligned.
    const int past = wide ? static_cast<int>(reinterpret_cast<uintptr_t>(to) / sizeof(Element) % vec_width) : 0;
    to_ = to - past;
    first_ = past;
    begun_ = broadcast(0.0F);
    begin_at(past);
    streams_ = wide && past_caches && past == 0;
  }

  // Whether what was appended ends with a vector of memory: more can be put there as it is.
  bool ends_whole() const { return count_ == 0; }

  // A vector of memory, as it is.
  POLYPHASE_INLINE void put(VecF x, bool half) {
    if constexpr (!wide) {
      half ? store_f16(to_, x) : store_bf16(to_, x);
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

  POLYPHASE_INLINE void append(VecF x, bool half) {
    const VecF turned = pick(x, turn_);
    put(select(less(lane(), begun_lanes_), begun_, turned), half);
    begun_ = turned;
  }

  // The first `count` lanes, less than a vector.
  POLYPHASE_INLINE void append_first(VecF x, int64_t count, bool half) {
    const VecF turned = pick(x, turn_);
    const VecF joined = select(less(lane(), begun_lanes_), begun_, turned);
    const int end = count_ + static_cast<int>(count);
    if (end >= vec_width) put(joined, half);
    begun_ = end >= vec_width ? turned : joined;
    begin_at(end % vec_width);
  }

  // What is left of the last vector; the run is over.
  void finish(bool half) {
    if (count_ > first_) {
      if constexpr (!wide) {
        half ? store_f16_first(to_, begun_, count_) : store_bf16_first(to_, begun_, count_);
      } else {
        store_range(to_, begun_, first_, count_);
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

  VecF begun_;        // lanes [first_, count_) of the vector at to_
  VecF begun_lanes_;  // how many
  VecI turn_;
  Element* to_ = nullptr;
  int count_ = 0;
  int first_ = 0;  // lanes in front of the run's first
  bool past_caches_ = false;
  bool streams_ = false;
};

}  // namespace polyphase::cpu::POLYPHASE_CLUSTER
