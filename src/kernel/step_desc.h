// StepDesc: one step of a program as a kernel row sees it: the parts to compute and what is known of their operands.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/layout.h"
#include "base/shape.h"
#include "base/tensor.h"
#include "ops/op.h"

namespace polyphase {

// How freely a tensor may lie in memory around its layout. Each kind holds the ones before.
enum class Density : std::uint8_t {
  dense,    // exactly the dense strides of its layout
  pitched,  // innermost axis of the layout contiguous, outer strides positive, any and in the layout's order: a window
            // of a larger tensor, such as a channel slice of a concat (pixel pitch), or rows and columns cut out of an
            // image
  strided,  // any strides, also 0 (broadcast) and negative
};
std::string_view name_of(Density density);

// An operand or result. Shapes may hold symbols while compiling; at plan time they are constant.
struct OperandDesc {
  bool present = true;  // false: an optional operand that is absent
  Type type;
  Layout layout;  // always set for present operands
  Density density = Density::dense;
  bool constant = false;  // the same for every run of the engine
  // The constant's elements where they are at hand (compile time, or a portable engine's load); may be null for a
  // constant.
  const TensorView* value = nullptr;
};

struct StepDesc {
  std::string name;         // the node's, for messages
  std::vector<Part> parts;  // beginnings, anchor, endings; Part::operands index `inputs`
  std::size_t anchor = 0;
  std::vector<OperandDesc> inputs;
  std::vector<OperandDesc> outputs;

  const Part& anchor_part() const { return parts[anchor]; }
  const Attributes& attributes() const { return parts[anchor].attributes; }
  std::span<const Part> beginnings() const { return {parts.data(), anchor}; }
  std::span<const Part> endings() const { return {parts.data() + anchor + 1, parts.size() - anchor - 1}; }
  // Whether a cast of a narrow image to f32 is the first of what stands before the anchor; whether one to a narrow
  // image is last.
  bool begins_with_cast() const;
  bool ends_with_cast() const;
  // Index into `inputs` of the anchor's operand i; -1 if absent or the running value of a beginning (then the first
  // beginning's operand 0 is the data).
  int anchor_operand(std::size_t i) const;
  // The tensor that enters the chain: operand 0 of the first part.
  const OperandDesc& data() const { return inputs[static_cast<std::size_t>(parts.front().operands.front())]; }
  // The operand i of the anchor; CHECKs that it is a present input.
  const OperandDesc& anchor_input(std::size_t i) const;
};

// The running value after a part, which a run is asked to write down as well: f32, in memory of its own.
struct KeptPart {
  std::size_t part = 0;
  TensorDesc desc;

  // Rounded up to whole lines of the caches.
  std::size_t size_bytes() const { return (static_cast<std::size_t>(desc.element_count()) * 4 + 63) / 64 * 64; }
};

// At plan time: every size a number, every operand's strides known. `desc` has constant shapes and constant attributes.
struct PlanRequest {
  const StepDesc& desc;
  std::span<const TensorDesc> inputs;  // absent operands: rank 0 with dtype of no meaning; see desc.inputs[i].present
  std::span<const TensorDesc> outputs;
  std::span<const KeptPart> kept = {};  // by part, ascending; only for rows that keep parts
};

}  // namespace polyphase
