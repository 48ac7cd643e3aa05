// Operators of your own, in C99: a shared library that includes this file, links nothing of Polyphase's, and gives one
// function, polyphase_get_plugin. docs/guides/plugins.md walks through one.
//
//   static int32_t shape(const polyphase_op_shapes* shapes) {      // sizes may not be known yet: reckon with handles
//     shapes->outputs[0] = shapes->inputs[0];
//     shapes->outputs[0].sizes[1] = shapes->multiply(shapes, shapes->inputs[0].sizes[1], shapes->constant(shapes, 2));
//     return 0;
//   }
//   static int32_t run(const polyphase_op_call* call) {…}            // plain row-major arrays
//   static const polyphase_op op = {.struct_size = sizeof(polyphase_op), .name = "twice", .version = 1, …};
//   static const polyphase_op* const ops[] = {&op};
//   static const polyphase_plugin plugin = {POLYPHASE_OP_ABI, sizeof(polyphase_plugin), "mine", 1, ops};
//   POLYPHASE_PLUGIN_EXPORT const polyphase_plugin* polyphase_get_plugin(void) { return &plugin; }
//
// A plugin is loaded only where a caller names its file: no model and no engine file loads one. It runs inside of the
// caller's process with all of its rights.
//
// Lifetimes. What polyphase_get_plugin gives, and all that it points at, stays as it is while the library is loaded.
// What Polyphase hands to a callback (arrays, texts, scratch) is valid during that call only and is not written to,
// unless a member says so.
// Threads. Every callback is called from any thread, also from several at once; callbacks keep no state.
// Purity. Results depend on operands and attributes alone: nodes of equal operands may be computed once, nodes that
// nobody reads not at all, and nodes of constants while compiling.
// Errors. Callbacks return 0, or any other number after writing what is wrong into `message`, a text of at most
// message_bytes bytes with its zero; the user reads it behind the node's name. C++ exceptions must not leave.
// Versions. POLYPHASE_OP_ABI changes when this file changes incompatibly. Structs that begin with struct_size may grow
// at their end within one ABI: set it to sizeof of the struct, and members that you do not know to 0, as C does.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "polyphase/c_dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

// NOLINTBEGIN(readability-identifier-naming): names as C writes them

#define POLYPHASE_OP_ABI 1
#define POLYPHASE_OP_MAX_RANK 8
#define POLYPHASE_OP_MAX_OPERANDS 32  // operands and results of one operator together
#define POLYPHASE_OP_MAX_ATTRIBUTES 32

#if defined(__GNUC__)
#define POLYPHASE_PLUGIN_EXPORT __attribute__((visibility("default")))
#else
#define POLYPHASE_PLUGIN_EXPORT
#endif

// ---------------------------------------------------------------- attributes

typedef int32_t polyphase_op_kind;
enum {
  POLYPHASE_OP_BOOLEAN = 0,
  POLYPHASE_OP_INTEGER = 1,
  POLYPHASE_OP_REAL = 2,
  POLYPHASE_OP_TEXT = 3,
  POLYPHASE_OP_INTEGERS = 4,
  POLYPHASE_OP_REALS = 5,
  POLYPHASE_OP_TENSOR = 6
};

// Elements in row-major order without gaps; bool is one byte.
typedef struct polyphase_op_tensor {
  void* data;             // NULL: an absent operand, a tensor without elements, or the sizes alone are meant (plan)
  polyphase_dtype dtype;  // -1: an optional operand that is absent
  int32_t rank;
  int64_t sizes[POLYPHASE_OP_MAX_RANK];  // in elements; behind the rank they are 0
} polyphase_op_tensor;

// The member of its kind holds the value; the others are 0.
typedef struct polyphase_op_value {
  polyphase_op_kind kind;
  int64_t integer;             // POLYPHASE_OP_INTEGER; POLYPHASE_OP_BOOLEAN as 0 or 1
  double real;                 // POLYPHASE_OP_REAL
  const char* text;            // POLYPHASE_OP_TEXT, ends with a zero
  size_t count;                // of integers or reals
  const int64_t* integers;     // POLYPHASE_OP_INTEGERS
  const double* reals;         // POLYPHASE_OP_REALS
  polyphase_op_tensor tensor;  // POLYPHASE_OP_TENSOR
} polyphase_op_value;

typedef struct polyphase_op_attribute {
  const char* name;  // as the model writes it; letters, digits and _
  polyphase_op_kind kind;
  int32_t required;                  // 1: a node must give it; 0: what is not given has the default
  polyphase_op_value default_value;  // kind and value; a tensor has no default
} polyphase_op_attribute;

// ---------------------------------------------------------------- the shape rule

// A size that may be known only when the network runs: a handle, valid during one call of a shape rule. 0 is none.
typedef int32_t polyphase_size;

typedef struct polyphase_op_type {
  polyphase_dtype dtype;  // -1: an optional operand that is absent
  int32_t rank;
  polyphase_size sizes[POLYPHASE_OP_MAX_RANK];  // in elements
} polyphase_op_type;

struct polyphase_op;

typedef struct polyphase_op_shapes {
  size_t struct_size;
  const struct polyphase_op* op;
  size_t input_count;  // as many as the operator lists; of a variadic operand all that the node has
  const polyphase_op_type* inputs;
  const polyphase_op_value* attributes;  // in the operator's order, complete
  size_t output_count;
  polyphase_op_type* outputs;  // the rule writes all of them
  char* message;
  size_t message_bytes;

  // Arithmetic on sizes. What overflows, divides by 0 or takes a handle that is none becomes a size that is refused
  // when it is used in a result. Division rounds down, and the remainder has the divisor's sign.
  polyphase_size (*constant)(const struct polyphase_op_shapes* shapes, int64_t value);
  polyphase_size (*add)(const struct polyphase_op_shapes* shapes, polyphase_size a, polyphase_size b);
  polyphase_size (*subtract)(const struct polyphase_op_shapes* shapes, polyphase_size a, polyphase_size b);
  polyphase_size (*multiply)(const struct polyphase_op_shapes* shapes, polyphase_size a, polyphase_size b);
  polyphase_size (*floor_divide)(const struct polyphase_op_shapes* shapes, polyphase_size a, polyphase_size b);
  polyphase_size (*modulo)(const struct polyphase_op_shapes* shapes, polyphase_size a, polyphase_size b);
  polyphase_size (*minimum)(const struct polyphase_op_shapes* shapes, polyphase_size a, polyphase_size b);
  polyphase_size (*maximum)(const struct polyphase_op_shapes* shapes, polyphase_size a, polyphase_size b);
  // 1 and the number, or 0: nobody knows it yet. Results must not depend on whether it is known.
  int32_t (*known)(const struct polyphase_op_shapes* shapes, polyphase_size size, int64_t* value);
  // The network is right only where a == b, or a <= b. Sizes that cannot decide it yet are tested when they are known,
  // and `why` is the error then. Not 0: it never holds; `why` is in the message, and the rule returns what it was
  // given.
  int32_t (*require_equal)(const struct polyphase_op_shapes* shapes, polyphase_size a, polyphase_size b,
                           const char* why);
  int32_t (*require_less_equal)(const struct polyphase_op_shapes* shapes, polyphase_size a, polyphase_size b,
                                const char* why);
} polyphase_op_shapes;

// ---------------------------------------------------------------- the kernel

// How a call is divided; set to one tile and no scratch before the callback is asked.
typedef struct polyphase_op_plan {
  size_t struct_size;
  int64_t tile_count;    // parts that may run at the same time, in any order: 1 to 2^31; 0 counts as 1
  size_t scratch_bytes;  // memory that each running tile has to itself, 64-byte aligned, of any contents: to 2^32
} polyphase_op_plan;

typedef struct polyphase_op_call {
  size_t struct_size;
  const struct polyphase_op* op;
  size_t input_count;  // as in polyphase_op_shapes
  const polyphase_op_tensor* inputs;
  const polyphase_op_value* attributes;
  size_t output_count;
  const polyphase_op_tensor* outputs;  // of the sizes that the shape rule gave; all their elements are to be written.
                                       // No call is made where every result is without elements
  char* message;
  size_t message_bytes;
  int64_t tile;  // 0 … tile_count - 1
  int64_t tile_count;
  void* scratch;
  size_t scratch_bytes;
} polyphase_op_call;

// Reserved for kernels that run on CUDA devices. Polyphase runs plugins on the CPU and does not look at it yet: NULL,
// or a struct that begins with its version and its size, both of which a later Polyphase will define.
typedef struct polyphase_op_cuda {
  uint32_t version;
  uint32_t struct_size;
} polyphase_op_cuda;

// ---------------------------------------------------------------- the operator

enum {
  POLYPHASE_OP_OPTIONAL = 1,  // may be absent; never the first
  POLYPHASE_OP_VARIADIC = 2   // the last operand only: one or more; with OPTIONAL also none
};

typedef struct polyphase_op_operand {
  const char* name;
  uint32_t flags;  // POLYPHASE_OP_OPTIONAL | POLYPHASE_OP_VARIADIC
} polyphase_op_operand;

// Nodes of ONNX models that are this operator: operands by position, attributes by name.
typedef struct polyphase_op_onnx_claim {
  const char* domain;  // "com.example"; "" is ONNX's own
  const char* op_type;
} polyphase_op_onnx_claim;

typedef struct polyphase_op {
  size_t struct_size;
  const char* name;  // small letters, digits and _; users call the operator PLUGIN.NAME
  // Raise it when equal nodes give other results than before, or take other operands or attributes: engines that were
  // compiled with another version are refused.
  uint32_t version;
  const char* doc;  // one sentence for people; may be NULL
  size_t input_count;
  const polyphase_op_operand* inputs;
  size_t output_count;         // at least 1
  const char* const* outputs;  // their names
  size_t attribute_count;
  const polyphase_op_attribute* attributes;
  size_t onnx_claim_count;
  const polyphase_op_onnx_claim* onnx_claims;
  // Overloads of PyTorch that are this operator, "mylib::upfirdn2d.default": tensors are operands and all else
  // attributes, both found by the names of the overload's arguments.
  size_t torch_claim_count;
  const char* const* torch_claims;
  // The types of the results. Called with handles while compiling, and again with numbers when sizes are known: both
  // must agree, which is tested.
  int32_t (*shape)(const polyphase_op_shapes* shapes);
  // May be NULL: one tile without scratch. Tensors have no data yet. Depend on sizes and attributes alone, not on the
  // machine, if the same bits matter everywhere.
  int32_t (*plan)(const polyphase_op_call* call, polyphase_op_plan* plan);
  // Computes one tile on the CPU.
  int32_t (*run)(const polyphase_op_call* call);
  const polyphase_op_cuda* cuda;  // reserved
  const void* user;               // the plugin's own
} polyphase_op;

typedef struct polyphase_plugin {
  uint32_t abi;  // POLYPHASE_OP_ABI
  uint32_t struct_size;
  const char* name;  // small letters, digits and _, beginning with a letter
  size_t op_count;
  const polyphase_op* const* ops;
} polyphase_plugin;

typedef const polyphase_plugin* (*polyphase_get_plugin_function)(void);
POLYPHASE_PLUGIN_EXPORT const polyphase_plugin* polyphase_get_plugin(void);  // the plugin defines it

// NOLINTEND(readability-identifier-naming)

#ifdef __cplusplus
}
#endif
