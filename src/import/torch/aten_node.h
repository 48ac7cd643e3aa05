// AtenNode: what a converter sees of its node: arguments by their names in the schema, checked against its types.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/dim.h"
#include "base/result.h"
#include "graph/graph.h"
#include "import/compose/emitter.h"
#include "import/torch/converter.h"

namespace polyphase {

// A Python number among tensors: it takes part in type promotion by its kind alone.
struct AtenScalar {
  enum class Kind { boolean, integer, real, complex };
  Kind kind = Kind::integer;
  Dim size;          // of boolean (0, 1) and integer
  double value = 0;  // of real, of complex its real part; of the others where it is known
  double imaginary = 0;
  Value* data = nullptr;  // of a real that only a run tells: f64, rank 0
};

// One argument after names have become values.
struct AtenArgument {
  bool none = false;
  bool list = false;
  Values tensors;                   // a null: None in a list, or the entry is a number
  std::vector<bool> complex;        // of each tensor: it holds pairs, see AtenNode::is_complex
  std::vector<AtenScalar> scalars;  // numbers; of a tensor argument that is a number, its only entry
  std::string text;
  std::int64_t code = -1;  // dtype, memory format, layout
};

// What the program says of a result.
struct AtenResult {
  std::optional<DType> dtype;  // of complex numbers that of their parts; nothing: unknown, or not ours
  bool is_complex = false;
};

// Where PyTorch keeps the elements of a tensor: element (i, j, …) at offset + i·strides[0] + j·strides[1] + … of its
// memory.
struct AtenMemory {
  Value* tensor = nullptr;
  std::vector<Dim> strides;
  Dim offset;
  bool may_be_own = true;  // false: surely a part of the memory of the next in the list, that it is a view of
};
// Of a parameter's tensor, and of what it is a view of, in order.
using AtenMemories = std::function<Result<std::vector<AtenMemory>>(std::string_view parameter)>;

class AtenNode : public Emitter {
 public:
  AtenNode(Graph& graph, std::string name, const AtenConverter& converter,
           std::map<std::string, AtenArgument, std::less<>> arguments, std::vector<AtenResult> declared,
           std::vector<std::string>& warnings, std::set<std::string, std::less<>>& used_symbols,
           AtenMemories memories = {})
      : Emitter(graph, std::move(name)),
        converter_(converter),
        arguments_(std::move(arguments)),
        declared_(std::move(declared)),
        warnings_(warnings),
        used_symbols_(used_symbols),
        memories_(std::move(memories)) {}

  const std::string& overload() const { return converter_.schema.name; }  // "conv2d", "add.Tensor"
  const AtenConverter& converter() const { return converter_; }

  // Whether the overload has such a parameter at all.
  bool takes(std::string_view parameter) const { return arguments_.find(parameter) != arguments_.end(); }
  // False for None.
  bool has(std::string_view parameter) const { return !argument(parameter).none; }
  // A tensor; a number becomes one of rank 0 (i64, f32, bool). Null for None.
  Value* tensor(std::string_view parameter);
  bool is_number(std::string_view parameter) const;
  const std::vector<AtenScalar>& scalars(std::string_view parameter) const { return argument(parameter).scalars; }
  const AtenScalar& scalar(std::string_view parameter) const;
  Values tensors(std::string_view parameter);  // of a list; a null for None
  // Complex numbers exist in the program only. Here such a tensor is one of floats with a last axis of 2 more, the real
  // and the imaginary part, and a converter that does not know about them never sees one.
  bool is_complex(std::string_view parameter, std::size_t i = 0) const;
  bool gives_complex(std::size_t i = 0) const { return i < declared_.size() && declared_[i].is_complex; }
  bool meets_complex() const;  // in any operand or result
  // For converters of complex numbers that hand over to the one of real numbers.
  AtenArgument& change(std::string_view parameter);
  // Sizes may be symbolic. A list of one entry counts for `count` axes, as in PyTorch.
  Dim size(std::string_view parameter) const;
  std::vector<Dim> sizes(std::string_view parameter, std::size_t count = 0) const;
  // Numbers that must be fixed: a symbolic one makes the node fail after the converter returns.
  std::int64_t integer(std::string_view parameter);
  std::vector<std::int64_t> integers(std::string_view parameter, std::size_t count = 0);
  double real(std::string_view parameter);
  std::vector<double> reals(std::string_view parameter);
  bool flag(std::string_view parameter) const;
  std::string word(std::string_view parameter) const { return argument(parameter).text; }
  // A dtype argument; nothing for None. A type that we cannot store makes the node fail.
  std::optional<DType> dtype(std::string_view parameter);

  // Empty where nothing is known.
  Result<std::vector<AtenMemory>> memories(std::string_view parameter) const;

  // An integer of rank 0 that data tell as a size: a name for it, or what it is known to be.
  Result<Dim> size_of(Value* number, DimRange range);

  // The dtype that the program declares for result i; of complex numbers that of their parts.
  std::optional<DType> result_dtype(std::size_t i = 0) const;

  // How many tensors the node gives, those of lists one by one.
  std::size_t result_count() const { return declared_.size(); }

  // The dtype in which PyTorch computes with these (tensors of rank 1 and more, then of rank 0, then numbers).
  DType promoted(const std::vector<std::string_view>& parameters) const;
  // The tensor or number as a tensor of this dtype.
  Value* tensor_as(std::string_view parameter, DType dtype);

  // An axis in [-rank, rank) → [0, rank); rank 0 counts as 1.
  Result<std::int64_t> axis(std::string_view parameter, int rank);
  Result<std::vector<std::int64_t>> axes(std::string_view parameter, int rank);

  void warn(std::string text) { warnings_.push_back("node '" + name() + "': " + std::move(text)); }
  void refuse_later(Error error);
  Result<void> finish() const;

 private:
  const AtenArgument& argument(std::string_view parameter) const;
  std::int64_t fixed(const AtenScalar& scalar, std::string_view parameter);

  const AtenConverter& converter_;
  std::map<std::string, AtenArgument, std::less<>> arguments_;
  std::vector<AtenResult> declared_;
  std::vector<std::string>& warnings_;
  std::set<std::string, std::less<>>& used_symbols_;
  AtenMemories memories_;
  std::shared_ptr<Error> refusal_;
};

// The program breaks a rule of PyTorch's operator.
inline constexpr const char* broken_program_advice =
    "PyTorch would refuse this as well; export the program again with torch.export.";
Error broken_program(std::string message);

}  // namespace polyphase
