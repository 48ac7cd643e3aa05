// Polyphase: compile a trained network into an engine, and run it. This header is the whole C++ API.
//
//   using namespace polyphase::api;
//   Result<Engine> engine = compile("model.onnx");                 // or Engine::load("model.ppe")
//   Result<Session> session = Session::create(*engine);
//   Result<std::vector<Tensor>> outputs = session->run({view(pixels, {1, 3, 256, 256})});
//
// Errors are values: test ok(), read error().text(). Nothing here throws. Sizes are in elements and always in the
// network's logical order (N, C, H, W), whatever lies in memory; strides are in elements; times are in seconds.
// Engine and Session are handles: copies share one object. An Engine never changes. One Session may be run from many
// threads at once. Two libraries have it: polyphase, and polyphase_runtime without compile, compile_bytes, open and
// pass_names. The C++ API promises that sources which compile against one release compile against the next of its minor
// version; binaries need the very release that they were compiled for. polyphase/c_api.h promises more.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "polyphase/dtype.h"
#include "polyphase/plugin.h"
#include "polyphase/result.h"

struct DLManagedTensorVersioned;  // declared in polyphase/dlpack.h and in DLPack's own dlpack.h

namespace polyphase::api {

using polyphase::DType;
using polyphase::Error;
using polyphase::ErrorCode;
using polyphase::Result;

std::string_view version();  // "0.1.0"

// ---------------------------------------------------------------- tensors

// Somebody else's memory as a tensor: `data` points at the element with index (0, …, 0). Empty `strides` mean row-major
// without gaps. Memory that is given as an input is only read.
struct TensorView {
  DType dtype = DType::f32;
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
  void* data = nullptr;
};

// Memory that somebody shares through DLPack, on the CPU, any strides; the tensor stays the caller's.
// Errors: invalid_argument (another device, several lanes, rank above 8), unsupported (dtype, version).
Result<TensorView> view_of_dlpack(const DLManagedTensorVersioned& tensor);

// A view of plain C++ memory, row-major: view(pointer, {1, 3, 256, 256}).
TensorView view(const float* data, std::vector<std::int64_t> sizes);
TensorView view(const double* data, std::vector<std::int64_t> sizes);
TensorView view(const std::int32_t* data, std::vector<std::int64_t> sizes);
TensorView view(const std::int64_t* data, std::vector<std::int64_t> sizes);
TensorView view(const std::uint8_t* data, std::vector<std::int64_t> sizes);
TensorView view(const bool* data, std::vector<std::int64_t> sizes);

// A tensor with its memory. Copies share it. What allocate and runs give is row-major and 64-byte aligned.
class Tensor {
 public:
  Tensor() = default;
  // Zero-filled. Errors: out_of_memory, invalid_argument (negative size, rank above 8).
  static Result<Tensor> allocate(DType dtype, std::vector<std::int64_t> sizes);
  // Memory of somebody else, which `owner` keeps alive (null: the caller sees to it), with the view's strides.
  // Errors: invalid_argument, as a run would refuse the view.
  static Result<Tensor> borrow(TensorView view, std::shared_ptr<void> owner = nullptr);
  // Takes a DLPack tensor over, also on failure: its deleter is called when the last copy of the result goes.
  // Errors: as view_of_dlpack.
  static Result<Tensor> from_dlpack(DLManagedTensorVersioned* tensor);
  // Shares the memory with DLPack: it lives until the receiver calls the deleter. Error: out_of_memory.
  Result<DLManagedTensorVersioned*> to_dlpack() const;

  DType dtype() const { return view_.dtype; }
  const std::vector<std::int64_t>& sizes() const { return view_.sizes; }
  const std::vector<std::int64_t>& strides() const { return view_.strides; }  // empty: row-major without gaps
  std::int64_t element_count() const;
  std::size_t size_bytes() const;
  void* data() const { return view_.data; }
  template <typename T>
  T* as() const {
    return static_cast<T*>(view_.data);
  }
  const TensorView& view() const { return view_; }

 private:
  friend struct Access;
  std::shared_ptr<void> owner_;
  TensorView view_;
};

// ---------------------------------------------------------------- compile

struct PassHistory;  // polyphase/diagnose.h

// What a compilation with CompileOptions::tune did.
struct TuneReport {
  std::size_t measured_steps = 0;  // different ones, whose kernels were measured
  std::size_t cached_steps = 0;    // whose times the timing cache had
  std::string timing_cache;        // the file; empty: none
  // Steps that kept the kernels' estimates because they could not be measured, "NODE: WHY".
  std::vector<std::string> skipped;
  // What was wrong with the timing cache and stopped nothing: damaged lines, a folder that cannot be written.
  std::vector<std::string> warnings;
};

// The values a symbolic size may take, both ends included. Equal ends fix the size.
struct SizeRange {
  std::int64_t low = 1;
  std::int64_t high = INT64_MAX;
};

struct CompileOptions {
  // native: packed for this CPU's instructions. portable: runs on any CPU, packs its weights when loaded.
  // scalar, avx2, avx512, avx512_bf16, amx: packed for every CPU that has them.
  std::string target = "native";
  // In what type convolutions may multiply; sums are FP32 or wider in any case. model: in bf16 where the model's own
  // tensors are. fp32: never narrower than FP32. auto: in bf16 wherever that is faster, where a convolution's error
  // is at most some 6e-3 of its L2 norm, or in FP32 with filters of four outputs, some 1e-6 (docs/semantics.md). bf16
  // takes a target with instructions for it, avx512_bf16 or amx; EngineInfo::remarks says how many convolutions use
  // either.
  std::string precision = "model";
  // Input name → its sizes, each a number or a name: {"x", {"1", "3", "H", "W"}}. A name is a symbolic size; the same
  // name is the same size. Inputs that are not listed keep the shape of the model.
  std::map<std::string, std::vector<std::string>> shapes;
  // Ranges of symbolic sizes. A fixed size becomes a constant of the engine.
  std::map<std::string, SizeRange> dims;
  // Input name → the sizes that kernels are chosen for where sizes are symbolic; any other size runs too.
  std::map<std::string, std::vector<std::int64_t>> tune_for;
  // Input or output name → how the caller has it, by the letters of its axes: "NHWC", any order, or channels in blocks
  // as in "NCHW16c", (N, ceil(C/16), H, W, 16), zeros in what fills the last block. The model's tensor is taken for
  // channels-first (NCW, NCHW, NCDHW); "NCHW:NHWC" says both, the caller's and the model's. The engine's input or
  // output then has the caller's axes in the caller's order, `shapes` and `tune_for` too.
  std::map<std::string, std::string> input_layouts;
  std::map<std::string, std::string> output_layouts;
  // compile_bytes: where the files lie that hold weights outside the model; empty: such a model is refused. A model
  // file has them beside itself.
  std::string external_data_folder;
  // The engine can take other weights later (Engine::refit). It keeps how its constants follow from the model's
  // weights, and the elements of those that meet in one constant (a convolution's weights with its bias or batch norm):
  // up to twice the file. Passes do not look at weights then.
  bool refittable = false;
  // Where the engine is written while it is compiled, as Engine::save would write it; empty: nowhere. The Engine that
  // compile gives has its weights in this file then, not in memory, and packed weights are never in memory together.
  // Errors: io.
  std::string engine_file;
  // Kernels and layouts are chosen by what they take on this CPU, not by estimates: those of every step that has a
  // choice are measured, at the sizes of tune_for where sizes are symbolic. Not for target portable.
  bool tune = false;
  int tune_threads = 0;  // of the sessions to come: 0, one per core
  // What was measured, for the compilations to come: a file that any number of processes may share. Empty:
  // timings.txt in $POLYPHASE_CACHE_DIR, else $XDG_CACHE_HOME/polyphase, else ~/.cache/polyphase.
  std::string timing_cache;
  TuneReport* tuned = nullptr;  // if set: becomes what tuning did
  // Whose operators the model may use beside ours: claimed nodes of ONNX and PyTorch, and calls of Network::add_plugin.
  std::vector<Plugin> plugins;
  std::vector<std::string> without;      // names of passes that are not run; pass_names() lists them
  std::string stop_after;                // the last pass that runs; empty: all
  std::vector<std::string> print_after;  // after these passes the graph is handed to `print` as text; "all": after each
  std::function<void(std::string_view pass, std::string_view text)> print;
  // Called as stages begin ("import", "pass fuse_activation", "measure conv1", …) with the share that is done, 0 to 1.
  std::function<void(std::string_view stage, double done)> progress;
  // Set to true from elsewhere, or by progress: the compilation ends with Error(cancelled) after the pass or the
  // packing that it is at.
  const std::atomic<bool>* cancelled = nullptr;
  // If set: becomes the graph before and after each pass.
  PassHistory* history = nullptr;
};

std::vector<std::string> pass_names();

// An input or output. A size is a number ("3"), a name ("H") or an expression over names ("2*H + 1").
struct Port {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::string> sizes;
  int value = -1;  // index into EngineInfo::values
};

// One value of the engine's program.
struct ValueInfo {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::string> sizes;
  std::string layout;   // order of the axes in memory, outermost first: "0,2,3,1"
  std::string storage;  // "input", "output", "constant", "arena", or "alias of NAME"
  int alias_of = -1;    // index into EngineInfo::values of the value that owns its memory; -1: itself
};

// Bytes that the engine holds: a constant's elements, or weights as a kernel has packed them. Equal bytes are held
// once.
struct ConstantInfo {
  std::string name;
  std::string format;            // of the packing; empty: row-major elements
  std::uint64_t size_bytes = 0;  // as the engine holds them
  std::vector<int> values;       // whose elements they are; indices into EngineInfo::values
  std::vector<int> steps;        // that read them; indices into EngineInfo::steps
};

// One step of the engine's program, as compiled.
struct StepInfo {
  std::string kind;               // "kernel", "copy", "bind", "branch", "loop"
  std::string node;               // the model's node it came from
  std::string operation;          // "conv_transpose + add + relu"
  std::vector<std::string> rows;  // kernels that may run it, best first
  bool reference = false;         // it runs the operator's plain loops
  std::vector<int> inputs;        // indices into EngineInfo::values; -1: an absent operand
  std::vector<int> outputs;
  int block = 0;            // 0: the program itself; others are run by branch and loop steps
  std::vector<int> blocks;  // that this step runs: of a branch for true, then for false; of a loop its body
  bool measured = false;    // its kernel was chosen by measured times (CompileOptions::tune)
};

// A tensor that the model names and carries: an initialiser of ONNX, a parameter or buffer of a PyTorch module.
struct WeightInfo {
  std::vector<std::string> names;  // in the model; several: tied, one tensor
  DType dtype = DType::f32;
  std::vector<std::int64_t> sizes;
  bool used = false;          // the network depends on it
  std::string fixed_because;  // why refit takes no other elements; empty: it does
};

struct EngineInfo {
  std::string model_name;
  std::string producer;                   // "polyphase 0.1.0"
  std::string cluster;                    // "avx512", …, "portable"
  std::map<std::string, SizeRange> dims;  // the symbolic sizes
  std::vector<ValueInfo> values;
  std::vector<StepInfo> steps;       // nested blocks follow the step that runs them
  std::uint64_t constant_bytes = 0;  // weights, packed or raw
  std::vector<ConstantInfo> constants;
  std::vector<std::string> remarks;  // what the compiler decided
  std::vector<PluginUse> plugins;    // operators of plugins that it runs
  bool refittable = false;           // Engine::refit takes other weights
  std::vector<WeightInfo> weights;   // of a refittable engine, in the model's order
};

struct NamedView {
  std::string name;
  TensorView view;
};

// What Engine::refit did with the names of weights.
struct RefitReport {
  std::vector<std::string> exchanged;
  std::vector<std::string> left_out;        // not given: they keep the elements that they have
  std::vector<std::string> without_effect;  // given, but the network does not depend on them
};

// A compiled network.
class Engine {
 public:
  Engine() = default;
  // Reads an engine file. Errors: io, corrupt, incompatible (another version, instructions this CPU lacks, operators of
  // a plugin that is not given, or given in another version).
  static Result<Engine> load(const std::string& path, const std::vector<Plugin>& plugins = {});
  // The same from the bytes of such a file, which are copied.
  static Result<Engine> from_bytes(std::span<const std::byte> bytes, const std::vector<Plugin>& plugins = {});
  // Writes under a temporary name, then renames: a reader sees the old file or the whole new one. Errors: io.
  Result<void> save(const std::string& path) const;
  // What save would write.
  Result<std::vector<std::byte>> to_bytes() const;

  // The engine with other weights, by the model's names (initialisers; parameters and buffers of a module): bit for bit
  // what compiling the model with these weights gives, without the model and without a compilation. This engine and its
  // sessions stay as they are; the new one shares what did not change. Weights that are not given keep their elements;
  // of tied ones one is enough. `weights` may lie in any strides and are only read during the call.
  // Errors: invalid_argument (the engine is not refittable, a name that the network does not have, another dtype, a
  // weight that is fixed), shape_mismatch, out_of_memory.
  Result<Engine> refit(std::span<const NamedView> weights, RefitReport* report = nullptr) const;

  const std::vector<Port>& inputs() const;
  const std::vector<Port>& outputs() const;
  EngineInfo info() const;

 private:
  friend struct Access;
  struct State;
  std::shared_ptr<const State> state_;
};

// Compiles a model file: ONNX (.onnx) or a program of torch.export (.pt2), told apart by content. Errors name the node
// and say what would work.
Result<Engine> compile(const std::string& path, const CompileOptions& options = {});
// The same from bytes in memory, which may go afterwards.
Result<Engine> compile_bytes(std::span<const std::byte> model, std::string_view name,
                             const CompileOptions& options = {});
// An engine file as it is (with the plugins of `options`), or a model file compiled with `options`: tells them apart by
// content.
Result<Engine> open(const std::string& path, const CompileOptions& options = {});
// Reads "1x3xHxW" into {"1", "3", "H", "W"}; "" is a scalar. Error: an empty piece or a strange character.
Result<std::vector<std::string>> parse_sizes(std::string_view text);

// ---------------------------------------------------------------- run

struct SessionOptions {
  // Workers of this session together, the callers included; 0: one per core, or fewer where the process's control group
  // (a container's cpu.max) has less of their time.
  int threads = 0;
  // The most bytes that one run's intermediate values may take; 0: half of the machine's memory.
  std::uint64_t memory_limit_bytes = 0;
};

struct Report;

// A value of the program while a run computes it.
struct ObservedValue {
  int value = 0;         // index into EngineInfo::values
  int step = 0;          // index into EngineInfo::steps: the step that wrote it
  std::string_view row;  // the kernel that ran; empty: the value is a view, or was put together of windows, and `step`
                         // is the first that reads it
  TensorView view;       // valid during the call only; strides of any kind
};

struct RunOptions {
  const std::atomic<bool>* cancelled = nullptr;  // set to true from elsewhere: the run ends with Error(cancelled)
  std::optional<std::chrono::steady_clock::time_point> deadline;
  // If set: seconds spent in each step are added to this list, which must hold info().steps.size() numbers or none.
  // Those of a branch or loop hold what it runs as well.
  std::vector<double>* step_seconds = nullptr;
  // If set: how often each step ran is added to this list, which is like step_seconds. Read with it only.
  std::vector<std::uint64_t>* step_runs = nullptr;
  // If set: becomes what Session::explain says for this run's sizes, with the steps whose sizes were born from its
  // data.
  Report* report = nullptr;
  // If set: called from the thread that runs, for every value when it is complete and before anything overwrites it;
  // not for constants and the caller's inputs. The plan, the kernels and the results are those of any other run. An
  // Error ends the run. step_seconds is not added to then.
  std::function<Result<void>(const ObservedValue&)> observe;
};

// What one kernel row said to one step.
struct RowReport {
  std::string row;
  std::string refusal;      // empty: it would take it
  double cost_seconds = 0;  // if it would: its own estimate on one core, or what it took
  bool taken = false;
  bool measured = false;  // cost_seconds was measured: only of an Engine that was compiled in this process, with tune
};

// One step for concrete input sizes.
struct StepReport {
  int step = 0;     // index into EngineInfo::steps
  std::string row;  // the kernel taken; empty for steps that run none, and where it is not known yet
  bool reference = false;
  // The sizes are born from data that no run has given: no row is taken yet, no cost is estimated, and `flops` and
  // `bytes` are 0.
  bool sizes_unknown = false;
  std::vector<RowReport> rows;
  double flops = 0;  // arithmetic of the definition: 2 per multiply-add, whatever the kernel does
  double bytes = 0;  // operands, weights and results, each once
};

// One value's place for concrete input sizes.
struct PlacedValue {
  int value = 0;  // index into EngineInfo::values
  std::vector<std::int64_t> sizes;
  std::uint64_t size_bytes = 0;
  std::uint64_t offset_bytes = 0;  // in its arena
  int first_step = 0;              // lives from here to last_step, both included; indices into EngineInfo::steps
  int last_step = 0;
  int arena = 0;  // 0: of sizes that follow from the inputs'; sizes born from data have arenas of their own
};

struct Report {
  std::vector<StepReport> steps;
  std::vector<PlacedValue> placed;  // what lives in the arena; aliases live inside another value
  // What kernels want beside it while they run: partial results, weights that are computed and packed then. Of these
  // `value` is -1, and `sizes` empty.
  std::vector<PlacedValue> workspaces;
  std::uint64_t arena_bytes = 0;
  std::uint64_t lower_bound_bytes = 0;  // the largest sum of values and scratch alive at one step: no arena is smaller
  std::uint64_t scratch_bytes = 0;      // kernels' private scratch, all workers together; not in the arena
  std::uint64_t constant_bytes = 0;     // weights as the session holds them
};

// Runs an engine. Safe to use from many threads at once: each run borrows a context (arena and plan) of its own, and
// all share the session's workers. The outputs' bits depend on the inputs alone, not on the number of threads.
class Session {
 public:
  Session() = default;
  // Errors: incompatible (instructions this CPU lacks, kernels this build lacks), corrupt, out_of_memory.
  static Result<Session> create(const Engine& engine, const SessionOptions& options = {});

  // Inputs by position, as Engine::inputs() lists them; outputs likewise, row-major.
  // Errors: invalid_argument (count, dtype), shape_mismatch, out_of_memory, cancelled, and what kernels find in data.
  Result<std::vector<Tensor>> run(std::span<const TensorView> inputs, const RunOptions& options = {}) const;
  Result<std::vector<Tensor>> run(std::initializer_list<TensorView> inputs) const;
  // Inputs by name, in any order.
  Result<std::vector<Tensor>> run_named(std::span<const NamedView> inputs, const RunOptions& options = {}) const;
  // Outputs into the caller's memory, which must have the outputs' sizes (see output_sizes) and must overlap neither
  // inputs nor itself. Any strides do; row-major memory is written without a copy.
  Result<void> run_into(std::span<const TensorView> inputs, std::span<const TensorView> outputs,
                        const RunOptions& options = {}) const;

  // The outputs' sizes for these inputs' sizes; nothing for an output whose sizes are born from data.
  Result<std::vector<std::optional<std::vector<std::int64_t>>>> output_sizes(
      const std::vector<std::vector<std::int64_t>>& input_sizes) const;
  // Kernels, refusals and memory for these inputs' sizes, without running. Steps whose sizes are born from data are
  // marked sizes_unknown, and their values are not among the placed ones: RunOptions::report has both.
  Result<Report> explain(const std::vector<std::vector<std::int64_t>>& input_sizes) const;

  const Engine& engine() const;
  int threads() const;
  // How often this session packed weights, planned a new set of sizes, and found one in its cache.
  struct Counters {
    std::uint64_t packs = 0;
    std::uint64_t plans = 0;
    std::uint64_t plan_hits = 0;
  };
  Counters counters() const;

 private:
  friend struct Access;
  struct State;
  std::shared_ptr<const State> state_;
};

// ---------------------------------------------------------------- devices

struct DeviceInfo {
  std::string name;                   // "AMD EPYC 7R13"
  std::string cluster;                // the best that runs here: "avx512"
  std::vector<std::string> features;  // "avx2", "fma", "avx512f", …
  int cores = 0;                      // that this process may use, within its control group
  std::uint64_t memory_bytes = 0;
};
std::vector<DeviceInfo> devices();
// Floating-point operations per second that `threads` threads reach here and now, measured for a moment with fused
// multiply-adds on registers alone: what `polyphase explain` holds steps against.
double measured_peak_flops(int threads);
// Bytes per second that `threads` threads together read, or read and write while they copy, whichever is more, when
// what they touch is `bytes` in all, again and again: a cache's rate where they fit into one, the memory's where not.
// Measured for a moment. 0: there is no memory for it.
double measured_bandwidth(int threads, std::uint64_t bytes);

}  // namespace polyphase::api
