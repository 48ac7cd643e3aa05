// Polyphase: what stands in the way of a model, and where its numbers go wrong. Over polyphase.h; nothing here is
// needed to run an engine.
#pragma once

#include "polyphase/polyphase.h"

namespace polyphase::api {

// ---------------------------------------------------------------- check

// Why some nodes of an operator cannot be taken.
struct CheckProblem {
  Error error;  // of the first such node
  std::int64_t nodes = 0;
};

// One type of operator that the model uses, nodes inside functions and branches included.
struct CheckedOperator {
  std::string domain;  // "" is ONNX's own
  std::string name;
  std::int64_t opset = 0;    // of its domain, as the model imports it
  int version = 0;           // the version of the operator that this opset means; 0: not known
  bool is_function = false;  // the model brings its definition along
  std::int64_t nodes = 0;
  std::int64_t nodes_refused = 0;      // 0: all can be compiled
  bool is_missing = false;             // Polyphase does not have the operator
  std::string first_node;              // in the order of the model
  std::string advice;                  // of a missing one: what to use instead
  std::vector<CheckProblem> problems;  // of one that is there: the first few kinds of refusal
};

// A size that stays open when the model is compiled.
struct CheckedSize {
  std::string name;
  SizeRange range;
  std::vector<std::string> inputs;  // "x[2]": where the caller's arrays give it
  std::string born_at;              // the node that reads it from data; empty: the inputs' shapes give it
  std::int64_t values = 0;          // tensors whose shape depends on it
};

// Steps that will run on an operator's plain loops.
struct CheckedSlow {
  std::string operation;  // "gather"
  std::string operands;   // types of the first: "f32[1, 3, H, W], i64[4]"
  std::int64_t steps = 0;
  std::string first_node;
  std::vector<std::string> reasons;  // what each kernel says against the first: "ROW: REASON"
};

struct CheckReport {
  std::string model_name;
  std::string producer;
  std::int64_t opset = 0;
  std::vector<Port> inputs;
  std::vector<Port> outputs;  // of a model that lacks something: those that can be computed
  std::vector<CheckedOperator> operators;
  std::vector<CheckedSize> sizes;
  std::int64_t run_time_checks = 0;  // relations between open sizes, tested whenever sizes change
  std::int64_t steps = 0;            // the engine would have
  std::vector<CheckedSlow> slow;
  std::map<std::string, std::int64_t> dtypes;  // tensors of each element type: {"f32", 120}
  std::vector<std::string> notes;              // on types, and the importer's warnings
  std::vector<Error> errors;                   // what else would end the compilation
  double seconds = 0;

  // It would compile and run.
  bool ok() const;
};

// Looks at a model without compiling it: no weight is packed, and what is missing is counted instead of ending the
// look. `options` as for compile; the passes run, because they decide which kernels are asked. Errors: the file cannot
// be read or is no sound model, or an option does not fit it.
Result<CheckReport> check(const std::string& path, const CompileOptions& options = {});
// Of a model in memory, as compile_bytes takes it.
Result<CheckReport> check_bytes(std::span<const std::byte> bytes, const CompileOptions& options = {});

// ---------------------------------------------------------------- split

// A part of a model, as an ONNX model of its own.
struct SplitPiece {
  std::string file;  // "0.polyphase.onnx", "1.onnxruntime.onnx"
  bool ours = false;
  std::string model;  // the file's bytes; weights that lay beside the model are in it
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::int64_t nodes = 0;
};
// A model as a chain of such parts: each needs the model's inputs and what parts before it gave.
struct SplitModel {
  std::string source;  // the model's file name
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<SplitPiece> pieces;
};
// Cuts an ONNX model that has nodes which Polyphase does not take: as few parts as the order of the nodes allows.
// Errors: those of reading; unsupported: the type of a tensor between two parts is not known, or it is no tensor.
Result<SplitModel> split(const std::string& path);
// Writes the parts and manifest.json into a new folder, which takes its name when it is complete. Errors: io;
// invalid_argument: the folder is there.
Result<void> save_split(const SplitModel& split, const std::string& folder);

// ---------------------------------------------------------------- converters

// One overload of PyTorch's ATen, or of a library beside it, that programs of torch.export may use.
struct ConverterInfo {
  std::string name;         // "aten.conv_transpose2d.input", "torchvision.deform_conv2d.default"
  std::string declaration;  // as PyTorch prints the schema, of ATen without "aten::"; of one that writes in place that
                            // of its twin
  bool in_place = false;    // "aten.relu_.default"
};

// All of them, by name.
std::vector<ConverterInfo> converters();

// ---------------------------------------------------------------- compare, layer by layer

struct LayerOptions {
  // Tensors by their name in the model, from another system or an earlier run; those the model does not have are
  // listed in LayerReport::unknown. Empty: the reference is the interpreter, which runs the model as it was imported,
  // before any pass, by the definitions of its operators.
  std::map<std::string, Tensor> golden;
  // A float tensor is past tolerance if sqrt(mean (found - expected)²) > tolerance · sqrt(mean expected²), or if
  // one is NaN or infinite where the other is something else. Integers and bools must be equal. Where the model holds
  // f16 or bf16, the tolerance is at least 16 times the rounding of that type.
  double tolerance = 1e-4;
  bool keep_found = false;     // LayerReport::found holds the run's tensors
  bool keep_expected = false;  // LayerReport::expected holds the reference's
  bool measure = false;        // LayerReport::run_seconds is measured as well
  // If set: gives the inputs once the model is compiled, in place of those given with the call.
  std::function<Result<std::vector<Tensor>>(const Engine&)> make_inputs;
  SessionOptions session;
};

// One tensor of the model: what the plan made of it.
struct LayerResult {
  std::string tensor;  // its name in the model; behind "CALL/" inside a function
  std::string node;    // the node that gives it
  std::string operation;
  DType dtype = DType::f32;
  std::vector<std::int64_t> sizes;
  // It was read in the run: the plan holds it, or the step that swallowed it wrote it down on its way. Otherwise it was
  // computed from the tensors around it that were read.
  bool held = false;
  int step = -1;          // of the engine, that gave it; -1: not held
  std::string row;        // the kernel that ran there
  bool compared = false;  // the reference has it
  std::string mismatch;   // dtype or shape differ from the reference: nothing else was compared
  double largest_absolute = 0;
  double relative_rms = 0;  // of elements that are finite on both sides
  std::int64_t found_nan = 0;
  std::int64_t found_infinite = 0;
  std::int64_t expected_nan = 0;
  std::int64_t expected_infinite = 0;
  bool past_tolerance = false;
};

struct LayerReport {
  std::vector<LayerResult> layers;      // in the order of the model
  int first_past = -1;                  // indices into layers; -1: none
  int first_not_finite = -1;            // the first with NaN or Inf that the reference does not have
  double tolerance = 0;                 // that was applied
  std::vector<std::string> unknown;     // golden tensors that the model does not have
  std::vector<std::string> unobserved;  // tensors of the model that no way of looking reached (inside loops)
  std::map<std::string, Tensor> found;
  std::map<std::string, Tensor> expected;
  double run_seconds = 0;        // one run as usual
  double capture_seconds = 0;    // the same with every value copied
  double swallowed_seconds = 0;  // computing what fusions swallowed, after a plan for it was made
  double reference_seconds = 0;
};

// Compiles the model, runs it once on `inputs`, and holds every tensor of the model against the reference. The engine
// is the one that compile() makes with these options: nothing is marked as an output, no pass is left out. Constants
// and shape arithmetic, which compiling computes, are not listed. Errors: as compile and Session::run.
Result<LayerReport> compare_layers(const std::string& path, std::span<const TensorView> inputs,
                                   const CompileOptions& compile = {}, const LayerOptions& options = {});

// ---------------------------------------------------------------- compat

enum class CompatOutcome : std::uint8_t {
  right,
  wrong,    // other numbers than the reference's, or another answer than its
  refused,  // Polyphase has the operator, and does not take it so
  missing,  // Polyphase does not have the operator
  not_run,  // nothing could be said about it: a branch that was not taken, no sizes that the model takes
};
std::string_view name_of(CompatOutcome outcome);  // "right", "wrong", "refused", "missing", "not run"

struct CompatOptions {
  std::uint64_t seed = 0;
  // The largest relative RMS error of a float result; none: by its type, compat_tolerance.
  std::optional<double> tolerance;
  std::string only;  // an operator by its name: the others are left out; empty: all
  // Open size → the values it is given, one test each; a shorter list repeats its last. A size that is not listed gets
  // the least, a middle and an odd value of its range that the model takes.
  std::map<std::string, std::vector<std::int64_t>> sizes;
  // A test whose reference would take more multiply-adds than this is not run: plain loops do some 10^8 a second.
  double most_operations = 2e10;
  SessionOptions session;
};

struct CompatOperand {
  bool present = true;  // false: an optional operand that is left out; the rest says nothing then
  DType dtype = DType::f32;
  std::vector<std::string> sizes;  // as the model has them: numbers, names, expressions
  bool constant = false;           // it follows from weights and sizes alone
};

// One run of a configuration.
struct CompatCase {
  std::map<std::string, std::int64_t> sizes;        // of the model's open sizes
  std::vector<std::vector<std::int64_t>> operands;  // by position
  std::string kernel;                               // "phases", …; "reference loops"; "view": nothing ran
  CompatOutcome outcome = CompatOutcome::not_run;
  std::string reason;  // of everything but right
  double error = 0;    // relative RMS of the worst float result
  double tolerance = 0;
};

// An operator with its attributes and operands, as often as the model has it so.
struct CompatRow {
  std::string operation;   // "conv_transpose"; of what was not imported, as the model has it: "com.acme.Fancy"
  std::string attributes;  // those that are not as the operator's page has them
  std::vector<CompatOperand> operands;
  std::int64_t nodes = 0;
  std::string first_node;
  CompatOutcome outcome = CompatOutcome::not_run;  // the worst of the cases
  std::string reason;
  std::vector<CompatCase> cases;
};

struct CompatReport {
  std::string model_name;
  std::string producer;
  std::vector<CompatRow> rows;      // in the order of the model; what was not imported first
  std::int64_t constant_nodes = 0;  // left out: what compiling computes, from weights and sizes
  std::vector<std::string> notes;
  double seconds = 0;

  std::int64_t count(CompatOutcome outcome) const;
  // Nothing is wrong, refused or missing, and something ran unless there is nothing to run.
  bool ok() const;
};

// Relative RMS that is allowed where nobody says another: 1e-5 in f32, 1e-11 in f64, two roundings in smaller types; 0
// for integers.
double compat_tolerance(DType dtype);

// Tests each distinct operator configuration of a model as it was imported: the operator alone, compiled with passes
// and kernels, on the tensors that reach it when the model runs on random inputs, against the reference interpreter.
// What the model needs and Polyphase lacks is among the rows. Errors: the file cannot be read or is no sound model; an
// option does not fit it.
Result<CompatReport> compat(const std::string& path, const CompileOptions& compile = {},
                            const CompatOptions& options = {});
// Of a model in memory, as compile_bytes takes it.
Result<CompatReport> compat_bytes(std::span<const std::byte> bytes, const CompileOptions& compile = {},
                                  const CompatOptions& options = {});

// Seeded values for tests: floats evenly in -1 … 1, integers and bools 0 or 1. `sizes` by input. Errors: out_of_memory.
Result<std::vector<Tensor>> random_inputs(std::span<const Port> inputs,
                                          const std::vector<std::vector<std::int64_t>>& sizes, std::uint64_t seed = 1);

// ---------------------------------------------------------------- extract

struct ExtractOptions {
  std::vector<std::string> from;  // tensors of the model's main graph that become inputs
  std::vector<std::string> to;    // and those that become outputs
  // Also compute what flows over the borders, by the interpreter, for the inputs that make_inputs gives.
  bool with_data = false;
  std::function<Result<std::vector<Tensor>>(const Engine&)> make_inputs;
};

struct Extracted {
  std::string model;  // an ONNX file with its weights inside
  std::map<std::string, Tensor> inputs;
  std::map<std::string, Tensor> outputs;
};

// The part of an ONNX model between some tensors and others, for a bug report. Errors: invalid_argument if a tensor is
// not there or the part is not closed (it needs what is neither given nor computed); as compile otherwise.
Result<Extracted> extract(const std::string& path, const ExtractOptions& options, const CompileOptions& compile = {});

// ---------------------------------------------------------------- passes

// One node of a graph between two passes.
struct GraphNode {
  std::string name;
  std::string operation;            // "conv_transpose + add + relu"
  std::string text;                 // its line in the text form
  std::vector<std::string> reads;   // values by name, in the node's order; "": an operand that is absent
  std::vector<std::string> writes;  // values by name; unique among nodes of one region
  std::vector<std::string> types;   // of those: "f32[1, 64, 2*H, 2*W]"
  bool is_constant = false;         // weights and numbers, and what is computed from them alone
  int depth = 0;                    // 0: of the outermost graph; others stand in a region of the last node before of
                                    // depth - 1: an If's branches, a loop's body
  int region = 0;                   // which of that node's regions
};

// A graph in an order in which values are written before they are read.
struct GraphState {
  std::vector<int> nodes;            // indices into PassHistory::nodes; those of regions follow their owner
  std::vector<std::string> outputs;  // values of the outermost graph that the caller gets
};

// One line of the table of passes; the same pass may stand there several times.
struct PassRun {
  std::string name;
  std::string why_here;  // what it does, and why at this place
  bool ran = false;      // false: left out, or behind stop_after
  bool changed = false;
  double seconds = 0;
  int graph = 0;  // index into PassHistory::graphs: what there was after it
};

// CompileOptions::history. Nodes that are alike in all of the above are the same node of the list: what a pass leaves
// alone keeps its index.
struct PassHistory {
  std::vector<GraphNode> nodes;
  std::vector<GraphState> graphs;  // [0]: as imported; then one for each run that changed something
  std::vector<PassRun> passes;     // in the order of the table
};

}  // namespace polyphase::api
