// The C ABI of Polyphase, in C99: compile a trained network into an engine, and run it.
//
//   polyphase_engine* engine;
//   polyphase_session* session;
//   polyphase_error* error = NULL;
//   if (polyphase_engine_load("model.ppe", &engine, &error) != POLYPHASE_OK) {
//     fprintf(stderr, "%s\n", polyphase_error_text(error));
//     polyphase_error_free(error);
//   }
//   polyphase_session_create(engine, NULL, &session, &error);
//   polyphase_session_run(session, 1, &input, 1, &output, NULL, &error);   // DLPack tensors
//
// Functions that can fail return a status and, where `error` is not NULL, set *error to an object that the caller frees
// (on success to NULL); *out is set on success only. No exception leaves the library. Handles are opaque; a session
// keeps what it needs of its engine, so handles may be freed in any order. Engines never change; one session may be run
// from many threads at once. Sizes and strides are in elements, in the network's logical order (N, C, H, W). Texts that
// are returned live as long as the object they were asked of and are UTF-8 as the model has them.
//
// libpolyphase has everything; libpolyphase_runtime everything but polyphase_compile and polyphase_compile_bytes. These
// functions are a promise: within one POLYPHASE_ABI_VERSION none goes or changes. Structs that begin with struct_size
// may grow at their end: set it to sizeof of the struct, and every other member to 0 unless you mean it.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "polyphase/c_dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

// NOLINTBEGIN(readability-identifier-naming): names as C writes them

#define POLYPHASE_ABI_VERSION 0

const char* polyphase_version(void);  // of the library that runs, "0.1.0"
int32_t polyphase_abi_version(void);  // POLYPHASE_ABI_VERSION of that library

// ---------------------------------------------------------------- status and errors

typedef int32_t polyphase_status;
enum {
  POLYPHASE_OK = 0,
  POLYPHASE_INVALID_ARGUMENT = 1,  // a call or an option is wrong: name, shape, dtype or value of something given
  POLYPHASE_INVALID_MODEL = 2,     // the model breaks a rule of its format or of an operator's definition
  POLYPHASE_UNSUPPORTED = 3,       // legal, but Polyphase does not have it
  POLYPHASE_SHAPE_MISMATCH = 4,    // sizes known only at run time contradict the model
  POLYPHASE_IO = 5,                // a file cannot be opened, read or written
  POLYPHASE_CORRUPT = 6,           // a file's bytes are not what they claim to be
  POLYPHASE_INCOMPATIBLE = 7,      // a sound engine for another version, CPU or device
  POLYPHASE_OUT_OF_MEMORY = 8,     // a limit on memory was reached
  POLYPHASE_CANCELLED = 9,         // the caller or a deadline stopped the run
  POLYPHASE_INTERNAL = 100         // a fault of Polyphase's own: please report it
};
const char* polyphase_status_name(polyphase_status status);  // "invalid_argument"

typedef struct polyphase_error polyphase_error;
polyphase_status polyphase_error_status(const polyphase_error* error);
const char* polyphase_error_message(const polyphase_error* error);  // what was found and what was expected
const char* polyphase_error_hint(const polyphase_error* error);     // what to do; may be ""
const char* polyphase_error_node(const polyphase_error* error);     // the model's node it is about; may be ""
const char* polyphase_error_text(const polyphase_error* error);     // all of it in one sentence or two
void polyphase_error_free(polyphase_error* error);                  // NULL is fine, here and in every other _free

// ---------------------------------------------------------------- engines

// An input or output. A size is a number ("3"), a name ("H") or an expression over names ("2*H + 1").
typedef struct polyphase_port {
  const char* name;
  polyphase_dtype dtype;
  int32_t rank;
  const char* const* sizes;  // rank texts
} polyphase_port;

typedef struct polyphase_engine polyphase_engine;

// Reads an engine file; the file is mapped, so do not change it in place while an engine or session of it lives.
// POLYPHASE_IO, _CORRUPT, _INCOMPATIBLE (another version, or instructions that this CPU lacks), _OUT_OF_MEMORY.
polyphase_status polyphase_engine_load(const char* path, polyphase_engine** out, polyphase_error** error);
// The same from the bytes of such a file, which are copied.
polyphase_status polyphase_engine_from_bytes(const void* bytes, size_t size_bytes, polyphase_engine** out,
                                             polyphase_error** error);
// The same with operators of plugins: paths of shared libraries written against polyphase/polyphase_op.h, whose code
// runs in this process. Nothing but such a path ever has one loaded. Besides: POLYPHASE_INVALID_ARGUMENT (a plugin is
// not well defined), _INCOMPATIBLE (no plugin; or not the one, or not the version, that the engine needs).
polyphase_status polyphase_engine_load_with(const char* path, size_t plugin_count, const char* const* plugins,
                                            polyphase_engine** out, polyphase_error** error);
polyphase_status polyphase_engine_from_bytes_with(const void* bytes, size_t size_bytes, size_t plugin_count,
                                                  const char* const* plugins, polyphase_engine** out,
                                                  polyphase_error** error);
// Writes under a temporary name, then renames: a reader sees the old file or the whole new one. POLYPHASE_IO.
polyphase_status polyphase_engine_save(const polyphase_engine* engine, const char* path, polyphase_error** error);
// What save would write, as memory that the caller gives to polyphase_bytes_free.
polyphase_status polyphase_engine_to_bytes(const polyphase_engine* engine, void** bytes, size_t* size_bytes,
                                           polyphase_error** error);
void polyphase_bytes_free(void* bytes);

size_t polyphase_engine_input_count(const polyphase_engine* engine);
size_t polyphase_engine_output_count(const polyphase_engine* engine);
// POLYPHASE_INVALID_ARGUMENT: no such index.
polyphase_status polyphase_engine_input(const polyphase_engine* engine, size_t index, polyphase_port* out,
                                        polyphase_error** error);
polyphase_status polyphase_engine_output(const polyphase_engine* engine, size_t index, polyphase_port* out,
                                         polyphase_error** error);
void polyphase_engine_free(polyphase_engine* engine);

struct DLManagedTensorVersioned;  // tensors, below

// New elements for the weight that the model calls `name`; any strides, read during the call only.
typedef struct polyphase_weight {
  const char* name;
  const struct DLManagedTensorVersioned* tensor;
} polyphase_weight;

// Another engine, with other weights: bit for bit what compiling the model with them gives, without the model and
// without a compilation. The engine given and its sessions stay as they are; weights that are not given keep their
// elements. It must have been compiled as refittable. POLYPHASE_INVALID_ARGUMENT (it was not, a name that the network
// does not have, another dtype, a weight that cannot change), _SHAPE_MISMATCH, _OUT_OF_MEMORY; *out is not touched
// then.
polyphase_status polyphase_engine_refit(const polyphase_engine* engine, size_t weight_count,
                                        const polyphase_weight* weights, polyphase_engine** out,
                                        polyphase_error** error);

// ---------------------------------------------------------------- compile (libpolyphase only)

// The sizes of an input as text with x between them, numbers or names: {"x", "1x3xHxW"}.
typedef struct polyphase_shape_option {
  const char* input;
  const char* sizes;
} polyphase_shape_option;

// The values that a symbolic size may take, both ends included. Equal ends fix it.
typedef struct polyphase_dim_option {
  const char* name;
  int64_t low;
  int64_t high;
} polyphase_dim_option;

// How the caller has an input or output, by the letters of its axes: "NHWC", "NCHW16c", or "NCHW:NHWC", the caller's
// and the model's where that is not channels-first. The engine's tensor then has the caller's axes in the caller's
// order.
typedef struct polyphase_layout_option {
  const char* name;
  const char* layout;
} polyphase_layout_option;

typedef struct polyphase_compile_options {
  size_t struct_size;
  const char* target;  // NULL or "native", "portable", "scalar", "avx2", "avx512", "avx512_bf16", "amx"
  const polyphase_shape_option* shapes;  // inputs that are not listed keep the model's shape
  size_t shape_count;
  const polyphase_dim_option* dims;
  size_t dim_count;
  const polyphase_shape_option* tune_for;  // numbers only: the sizes that kernels are chosen for; any other runs too
  size_t tune_for_count;
  int32_t refittable;          // not 0: polyphase_engine_refit takes other weights; the engine is up to twice as large
  int32_t tune;                // not 0: kernels and layouts are chosen by what they take on this CPU
  int32_t tune_threads;        // of the sessions to come; 0: one per core
  const char* timing_cache;    // the file that remembers what was measured; NULL: the user's (CompileOptions)
  const char* engine_file;     // written while it is compiled; the engine's weights are in it then. NULL: in memory
  const char* precision;       // NULL or "model", "fp32", "auto": in what type convolutions may multiply
  const char* const* plugins;  // paths of shared libraries whose operators the model uses (polyphase/polyphase_op.h)
  size_t plugin_count;
  const polyphase_layout_option* input_layouts;  // inputs that are not listed are as the model has them
  size_t input_layout_count;
  const polyphase_layout_option* output_layouts;
  size_t output_layout_count;
} polyphase_compile_options;

// Compiles an ONNX file or a program of torch.export (.pt2), told apart by content; options may be NULL. POLYPHASE_IO,
// _CORRUPT, _INVALID_MODEL, _UNSUPPORTED, _INVALID_ARGUMENT (options), _OUT_OF_MEMORY.
polyphase_status polyphase_compile(const char* path, const polyphase_compile_options* options, polyphase_engine** out,
                                   polyphase_error** error);
// The same from memory. Weights in files of their own are looked for in `folder`, and refused where it is NULL.
polyphase_status polyphase_compile_bytes(const void* model, size_t size_bytes, const char* folder,
                                         const polyphase_compile_options* options, polyphase_engine** out,
                                         polyphase_error** error);

// ---------------------------------------------------------------- tensors: DLPack, any strides, in the CPU's memory

// Declared in polyphase/dlpack.h and in DLPack's own dlpack.h. The library borrows tensors that it is given and owns
// none of them; tensors that it makes are freed with polyphase_tensor_free, or by their deleter.
struct DLManagedTensorVersioned;

// Your memory as a tensor. `strides` may be NULL (row-major without gaps), negative, or 0 in inputs. The sizes and
// strides are copied; `data` must outlive the tensor. POLYPHASE_INVALID_ARGUMENT: dtype, rank above 8, negative size.
polyphase_status polyphase_tensor_borrow(polyphase_dtype dtype, int32_t rank, const int64_t* sizes,
                                         const int64_t* strides, void* data, struct DLManagedTensorVersioned** out,
                                         polyphase_error** error);
// New row-major memory, 64-byte aligned and zero.
polyphase_status polyphase_tensor_allocate(polyphase_dtype dtype, int32_t rank, const int64_t* sizes,
                                           struct DLManagedTensorVersioned** out, polyphase_error** error);
void polyphase_tensor_free(struct DLManagedTensorVersioned* tensor);

// ---------------------------------------------------------------- sessions

typedef struct polyphase_session polyphase_session;

typedef struct polyphase_session_options {
  size_t struct_size;
  int32_t threads;              // workers together, callers included; 0: one per core that the control group leaves
  uint64_t memory_limit_bytes;  // of one run's intermediate values; 0: half of the machine's memory
} polyphase_session_options;

// A wish to stop, which any thread may make at any time.
typedef struct polyphase_cancel polyphase_cancel;
polyphase_status polyphase_cancel_create(polyphase_cancel** out, polyphase_error** error);
void polyphase_cancel_request(polyphase_cancel* cancel);  // runs that hold it end soon, later ones at once
void polyphase_cancel_reset(polyphase_cancel* cancel);
void polyphase_cancel_free(polyphase_cancel* cancel);  // when no run holds it any more

typedef struct polyphase_run_options {
  size_t struct_size;
  const polyphase_cancel* cancel;  // NULL: none
  double timeout_seconds;          // from the call on; 0: none. Past it the run ends with POLYPHASE_CANCELLED
} polyphase_run_options;

// POLYPHASE_INCOMPATIBLE (instructions this CPU lacks, kernels this build lacks), _CORRUPT, _OUT_OF_MEMORY.
polyphase_status polyphase_session_create(const polyphase_engine* engine, const polyphase_session_options* options,
                                          polyphase_session** out, polyphase_error** error);
int32_t polyphase_session_threads(const polyphase_session* session);
void polyphase_session_free(polyphase_session* session);  // when no run is under way

// Runs with inputs in the order of the engine's; fills outputs[0 .. output_count - 1] with new row-major tensors, which
// the caller frees. output_count must be the engine's. POLYPHASE_INVALID_ARGUMENT (count, dtype, device),
// _SHAPE_MISMATCH, _OUT_OF_MEMORY, _CANCELLED; on failure no output is set, and the session is as good as before.
polyphase_status polyphase_session_run(polyphase_session* session, size_t input_count,
                                       const struct DLManagedTensorVersioned* const* inputs, size_t output_count,
                                       struct DLManagedTensorVersioned** outputs, const polyphase_run_options* options,
                                       polyphase_error** error);
// The same into the caller's tensors, which must have the outputs' sizes and dtypes, not overlap inputs or themselves,
// and not be read-only. On failure their contents are undefined.
polyphase_status polyphase_session_run_into(polyphase_session* session, size_t input_count,
                                            const struct DLManagedTensorVersioned* const* inputs, size_t output_count,
                                            struct DLManagedTensorVersioned* const* outputs,
                                            const polyphase_run_options* options, polyphase_error** error);
// The sizes that an output will have for inputs of these tensors' sizes; their data is not read. *rank becomes -1 where
// the sizes are born from data. `sizes` must have room for 8.
polyphase_status polyphase_session_output_sizes(polyphase_session* session, size_t input_count,
                                                const struct DLManagedTensorVersioned* const* inputs,
                                                size_t output_index, int32_t* rank, int64_t* sizes,
                                                polyphase_error** error);

// NOLINTEND(readability-identifier-naming)

#ifdef __cplusplus
}
#endif
