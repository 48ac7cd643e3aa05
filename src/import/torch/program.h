// TorchProgram: what torch.export writes down of a network (its ExportedProgram), as read from models/*.json.
//
// Source: torch/_export/serde/schema.py, version 8. Sizes and other symbolic numbers stay text here (sympy's srepr);
// sym_expr.h reads them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"

namespace polyphase {

struct ProgramGraph;

// A number, or an expression over symbols.
struct ProgramNumber {
  std::optional<std::int64_t> number;
  std::string expression;
};

// ScalarType of PyTorch as we store it. Error: unsupported (complex, quantised, unknown).
Result<DType> dtype_of_scalar_type(std::int64_t code);
bool is_complex_type(std::int64_t code);
// The same, of complex types that of the parts. Error: unsupported (complex halves too).
Result<DType> dtype_of_parts(std::int64_t code);

struct ProgramTensor {
  std::int64_t scalar_type = 0;
  std::vector<ProgramNumber> sizes;
  std::vector<ProgramNumber> strides;
  ProgramNumber storage_offset;
  std::int64_t layout = 7;  // 7: strided
};

// One entry of an argument.
struct ProgramItem {
  enum class Kind {
    none,
    tensor,   // `text` is its name
    symbol,   // a symbolic integer, bool or float by name
    integer,  // also an index: dtype, memory format, layout as their codes
    real,
    complex,  // `real` and `imaginary`
    boolean,
    text,
    dtype,
    memory_format,
    layout,
    device,  // `text`
    graph,
    other,  // what we do not read; `text` says what it is
  };
  Kind kind = Kind::none;
  std::string text = {};
  std::int64_t integer = 0;
  double real = 0;
  double imaginary = 0;
  std::shared_ptr<const ProgramGraph> graph = {};
};

struct ProgramArgument {
  bool list = false;
  std::vector<ProgramItem> items;  // exactly one unless `list`
};

struct ProgramNode {
  std::string target;  // "torch.ops.aten.relu.default"
  std::string name;    // may be empty in older files
  std::vector<std::pair<std::string, ProgramArgument>> inputs;
  std::vector<ProgramArgument> outputs;
  std::string stack_trace;
};

struct ProgramGraph {
  std::vector<ProgramArgument> inputs;
  std::vector<ProgramArgument> outputs;
  std::vector<ProgramNode> nodes;
  std::map<std::string, ProgramTensor, std::less<>> tensors;
  std::map<std::string, ProgramNumber, std::less<>> symbols;   // symbolic integers by name
  std::map<std::string, std::string, std::less<>> conditions;  // symbolic bools by name: their expression, or "true"
  std::map<std::string, std::string, std::less<>> reals;       // symbolic floats by name: their expression
};

struct ProgramInput {
  enum class Kind { parameter, buffer, constant_tensor, user, constant, token, custom_object };
  Kind kind = Kind::user;
  ProgramItem item;    // the name it has in the graph
  std::string target;  // of parameters, buffers, constants: "encoder.0.weight"
};

struct ProgramOutput {
  enum class Kind { user, mutation, other };
  Kind kind = Kind::user;
  ProgramItem item;
  std::string target;  // of what is changed in place, or what else it is
};

struct TorchProgram {
  ProgramGraph graph;
  std::vector<ProgramInput> inputs;
  std::vector<ProgramOutput> outputs;
  std::map<std::string, std::pair<std::optional<std::int64_t>, std::optional<std::int64_t>>, std::less<>> ranges;
  std::vector<std::string> input_names;  // of user inputs, after forward's parameters: "x", "a.b.0"; may be empty
  std::vector<std::string> guards;       // Python conditions that the export relies on
  std::string torch_version;
};

// Errors: corrupt (no such JSON), unsupported (another version of the schema).
Result<TorchProgram> read_program(std::string_view json);

// Weights: name → where its bytes lie.
struct ProgramPayload {
  std::string path_name;
  bool use_pickle = false;
  ProgramTensor tensor;
};
Result<std::map<std::string, ProgramPayload, std::less<>>> read_payloads(std::string_view json);

}  // namespace polyphase
