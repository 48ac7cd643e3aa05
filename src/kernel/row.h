// Row: the contract between the compiler and one kernel. A row says what it accepts and why not, what it costs, how it
// packs constants, plans for concrete sizes, and computes tile after tile. It never allocates, throws, locks or starts
// a thread while running, and its tiles depend on shape and cluster only, never on the thread count: the same bits for
// any number of threads.
//
//   compile:  accepts → cost → packed_bytes / pack                 load or first sight of a size:  plan → workspace
//   run:      for phase in 0…phases-1:  for tile in 0…tiles(phase)-1, on any thread:  run(…, phase, tile, …) (barrier
//   between phases)
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "kernel/step_desc.h"
#include "kernel/target.h"

namespace polyphase {

// How a row's result relates to direct summation in the same dtype.
enum class Exactness : std::uint8_t {
  exact,    // exact on integers that the dtype holds: only the order of additions differs
  bounded,  // a transform changes the rounding; the row's doc names the bound
  loose,    // the same with larger errors than FP32 sums need have: taken only where the step's attributes allow it
};

// A share of a pack: shares of one count write every byte once, in any order, on any threads.
struct PackShare {
  std::int64_t index = 0;
  std::int64_t count = 1;
};

// How many shares are worth their hand-out.
inline std::int64_t shares_of_pack(std::size_t size_bytes) {
  constexpr std::size_t share_bytes = std::size_t{1} << 19;
  return static_cast<std::int64_t>(size_bytes / share_bytes) + 1;
}

// Packs constants once, e.g. weights into panels. `format` names the byte layout with a version ("gemm_panels/1"): rows
// that share a format share the bytes.
struct Packing {
  std::string_view format;  // empty: the row packs nothing
  // Which of desc.inputs go into the pack, in this order; they are then not passed to run.
  std::vector<int> (*inputs)(const StepDesc&) = nullptr;
  std::size_t (*size_bytes)(const StepDesc&, const Target&) = nullptr;
  // Writes its share of size_bytes bytes, which may be nothing; `out` is where the pack begins, 64-byte aligned, and
  // holds anything. `views` are the operands named by `inputs`, with any strides. Also runs as a step, when the weights
  // are computed. Runs on any CPU, whatever the target is.
  void (*pack)(const StepDesc&, const Target&, std::span<const TensorView> views, PackShare, std::byte* out) = nullptr;
};

// A plan: plain bytes that the row alone understands; made by plan(), read by run(). Never stored in a file.
class Plan {
 public:
  Plan() = default;
  template <typename T>
  static Plan of(const T& head) {
    static_assert(std::is_trivially_copyable_v<T>);
    Plan out;
    out.words_.resize((sizeof(T) + 7) / 8);
    std::memcpy(out.words_.data(), &head, sizeof(T));
    return out;
  }
  // Appends an array behind the head; returns its byte offset from the plan's start.
  template <typename T>
  std::size_t append(std::span<const T> items) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= 8);
    const std::size_t offset = words_.size() * 8;
    words_.resize(words_.size() + (items.size_bytes() + 7) / 8);
    if (!items.empty()) std::memcpy(words_.data() + offset / 8, items.data(), items.size_bytes());
    return offset;
  }
  template <typename T>
  T& head() {
    return *reinterpret_cast<T*>(words_.data());
  }
  template <typename T>
  const T& head() const {
    return *reinterpret_cast<const T*>(words_.data());
  }
  const std::byte* bytes() const { return reinterpret_cast<const std::byte*>(words_.data()); }
  std::size_t size_bytes() const { return words_.size() * 8; }

 private:
  std::vector<std::uint64_t> words_;
};

// Scratch memory of one step. `shared` keeps its contents from phase to phase and is seen by all tiles; `per_worker` is
// private to the worker that runs a tile and has no contents at its start. Both 64-byte aligned.
struct Workspace {
  std::size_t shared_bytes = 0;
  std::size_t per_worker_bytes = 0;
};

// Where one run finds its data.
struct Pointers {
  const std::byte* const* inputs = nullptr;  // by desc.inputs; null for absent and for packed operands
  std::byte* const* outputs = nullptr;       // by desc.outputs
  const std::byte* packed = nullptr;         // 64-byte aligned; null if the row packs nothing
  std::byte* shared = nullptr;               // Workspace::shared_bytes
  std::byte* const* kept = nullptr;          // by PlanRequest::kept
};

// What a run can find wrong in data ("an index lies outside the axis"); null: nothing. Static text.
using Fault = const char*;

struct Row {
  std::string_view name;  // for the algorithm, never for an ISA: "conv_transpose_gemm"
  std::string_view op;    // the anchor operator
  std::string_view doc;   // one sentence: when it is the right one
  Exactness exactness = Exactness::exact;
  bool reference = false;  // the operator's plain loops
  // The loosest strides that run() takes on every operand it does not pack and on every result. Catalogue::ask refuses
  // for the row what is looser. No alignment beyond the element's may be assumed of what is not dense.
  Density takes = Density::dense;
  // Result 0 may be the very memory of an operand of equal type and strides that elementwise parts read: each element
  // of it is read before the result's is written there, by the same tile. (Never the data of a convolution, only what
  // its endings read.)
  bool in_place = false;
  // Multiplies in bf16: taken only where the step's attribute `products` allows it.
  bool narrow_products = false;
  // plan() honours PlanRequest::kept for the anchor and every ending: the run then also writes down what these yield,
  // with the same bits everywhere else.
  bool keeps_parts = false;

  // Empty: taken. Otherwise the reason, in words for `explain`. Must hold for every value of symbolic sizes.
  std::string (*accepts)(const StepDesc&, const Target&) = nullptr;
  // Estimated seconds on one core; symbolic sizes have been replaced by likely ones.
  double (*cost)(const StepDesc&, const Target&) = nullptr;
  Packing packing;
  Plan (*plan)(const PlanRequest&, const Target&) = nullptr;
  Workspace (*workspace)(const Plan&) = nullptr;  // null: none
  int (*phases)(const Plan&) = nullptr;           // null: 1
  std::int64_t (*tiles)(const Plan&, int phase) = nullptr;
  Fault (*run)(const Plan&, const Pointers&, int phase, std::int64_t tile, std::byte* worker_scratch) = nullptr;
};

}  // namespace polyphase
