// A plugin for Polyphase in one C file: StyleGAN's upfirdn2d, which zero-inserts, pads or crops, filters each channel with
// one FIR kernel, and keeps every down-th pixel. docs/guides/plugins.md reads it from top to bottom.
//
//   z[n, c, up_y·i, up_x·j] = x[n, c, i, j], else 0          then rows and columns of 0 around z (cropped where negative)
//   y[n, c, i, j] = gain · Σ f[a, b] · z[n, c, down_y·i + h-1-a, down_x·j + w-1-b]      flip_filter: f[h-1-a, w-1-b]
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "polyphase/polyphase_op.h"

// As attribute lists below: x and y, and the order of the padding, are those of StyleGAN's Python function.
enum { UP, DOWN, PADDING, FLIP_FILTER, GAIN };

static int32_t refuse(char* message, size_t message_bytes, const char* why) {
  snprintf(message, message_bytes, "%s", why);
  return 1;
}

typedef struct settings {
  int64_t up[2], down[2];  // x, y
  int64_t padding[4];      // x before, x behind, y before, y behind
} settings;

// One number counts for both axes; of the padding one for all sides, two for x and y.
static int32_t read_settings(const polyphase_op_value* given, settings* out) {
  const polyphase_op_value* pair[2] = {&given[UP], &given[DOWN]};
  int64_t* to[2] = {out->up, out->down};
  for (int i = 0; i < 2; ++i) {
    if (pair[i]->count != 1 && pair[i]->count != 2) return 0;
    for (int axis = 0; axis < 2; ++axis) {
      to[i][axis] = pair[i]->integers[pair[i]->count == 1 ? 0 : axis];
      if (to[i][axis] < 1 || to[i][axis] > 1024) return 0;
    }
  }
  const polyphase_op_value* padding = &given[PADDING];
  if (padding->count != 1 && padding->count != 2 && padding->count != 4) return 0;
  for (size_t i = 0; i < 4; ++i) {
    out->padding[i] = padding->integers[padding->count == 1 ? 0 : padding->count == 2 ? i / 2 : i];
    if (out->padding[i] < -(1 << 30) || out->padding[i] > 1 << 30) return 0;
  }
  return 1;
}

// ---------------------------------------------------------------- the shape rule

static int32_t shape(const polyphase_op_shapes* s) {
  const polyphase_op_type* x = &s->inputs[0];
  const polyphase_op_type* f = &s->inputs[1];
  settings set;
  if (!read_settings(s->attributes, &set))
    return refuse(s->message, s->message_bytes,
                  "up and down must be 1 or 2 numbers of 1 to 1024, padding 1, 2 or 4 up to 2^30.");
  if (x->rank != 4 || x->dtype != POLYPHASE_F32)
    return refuse(s->message, s->message_bytes, "x must be (N, C, H, W) of float32.");
  const int has_filter = f->dtype != -1;
  if (has_filter && ((f->rank != 1 && f->rank != 2) || f->dtype != POLYPHASE_F32))
    return refuse(s->message, s->message_bytes, "f must be (taps) or (rows, columns) of float32.");
  s->outputs[0] = *x;
  for (int axis = 0; axis < 2; ++axis) {  // x is the last axis, y the one before
    const polyphase_size one = s->constant(s, 1);
    const polyphase_size taps = !has_filter ? one : f->rank == 1 ? f->sizes[0] : f->sizes[1 - axis];
    polyphase_size padded = s->multiply(s, x->sizes[3 - axis], s->constant(s, set.up[axis]));
    padded = s->add(s, padded, s->constant(s, set.padding[2 * axis] + set.padding[2 * axis + 1]));
    const char* why = "upfirdn2d needs an image that, upsampled and padded, is at least as large as the filter.";
    if (s->require_less_equal(s, taps, padded, why)) return 1;
    const polyphase_size steps =
        s->floor_divide(s, s->subtract(s, padded, taps), s->constant(s, set.down[axis]));
    s->outputs[0].sizes[3 - axis] = s->add(s, steps, one);
  }
  return 0;
}

// ---------------------------------------------------------------- the kernel

// Every channel of every image by itself; they run on as many threads as the session has.
static int32_t plan(const polyphase_op_call* call, polyphase_op_plan* out) {
  out->tile_count = call->inputs[0].sizes[0] * call->inputs[0].sizes[1];
  return 0;
}

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && a < 0); }

typedef struct filter {
  const float* taps;  // NULL: the single tap 1
  int32_t separable;
  int64_t rows, columns;
  int32_t flip;
} filter;

static double tap(const filter* f, int64_t row, int64_t column) {
  if (f->taps == NULL) return 1;
  // Convolution turns the kernel around, unless it was turned already.
  if (!f->flip) {
    row = f->rows - 1 - row;
    column = f->columns - 1 - column;
  }
  if (f->separable) return (double)f->taps[row] * (double)f->taps[column];
  return (double)f->taps[row * f->columns + column];
}

static int32_t run(const polyphase_op_call* call) {
  const polyphase_op_tensor* x = &call->inputs[0];
  const polyphase_op_tensor* f = &call->inputs[1];
  const polyphase_op_tensor* y = &call->outputs[0];
  settings set;
  if (!read_settings(call->attributes, &set)) return 1;
  filter fir = {NULL, 0, 1, 1, (int32_t)call->attributes[FLIP_FILTER].integer};
  if (f->dtype != -1) {
    fir.taps = f->data;
    fir.separable = f->rank == 1;
    fir.rows = f->sizes[0];
    fir.columns = f->rank == 1 ? f->sizes[0] : f->sizes[1];
  }
  const double gain = call->attributes[GAIN].real;
  if (!isfinite(gain)) return refuse(call->message, call->message_bytes, "gain is not finite.");
  const int64_t height = x->sizes[2], width = x->sizes[3];
  const float* from = (const float*)x->data + call->tile * height * width;
  float* to = (float*)y->data + call->tile * y->sizes[2] * y->sizes[3];
  for (int64_t i = 0; i < y->sizes[2]; ++i) {
    for (int64_t j = 0; j < y->sizes[3]; ++j) {
      double sum = 0;
      for (int64_t a = 0; a < fir.rows; ++a) {
        const int64_t row = i * set.down[1] + a - set.padding[2];
        const int64_t source_row = floor_div(row, set.up[1]);
        if (row != source_row * set.up[1] || source_row < 0 || source_row >= height) continue;
        for (int64_t b = 0; b < fir.columns; ++b) {
          const int64_t column = j * set.down[0] + b - set.padding[0];
          const int64_t source = floor_div(column, set.up[0]);
          if (column != source * set.up[0] || source < 0 || source >= width) continue;
          sum += tap(&fir, a, b) * (double)from[source_row * width + source];
        }
      }
      to[i * y->sizes[3] + j] = (float)(sum * gain);
    }
  }
  return 0;
}

// ---------------------------------------------------------------- the tables

static const int64_t ones[] = {1}, zeros[] = {0};
static const polyphase_op_operand inputs[] = {{"x", 0}, {"f", POLYPHASE_OP_OPTIONAL}};
static const char* const outputs[] = {"y"};
static const polyphase_op_attribute attributes[] = {
    [UP] = {"up", POLYPHASE_OP_INTEGERS, 0, {.kind = POLYPHASE_OP_INTEGERS, .count = 1, .integers = ones}},
    [DOWN] = {"down", POLYPHASE_OP_INTEGERS, 0, {.kind = POLYPHASE_OP_INTEGERS, .count = 1, .integers = ones}},
    [PADDING] = {"padding", POLYPHASE_OP_INTEGERS, 0, {.kind = POLYPHASE_OP_INTEGERS, .count = 1, .integers = zeros}},
    [FLIP_FILTER] = {"flip_filter", POLYPHASE_OP_BOOLEAN, 0, {.kind = POLYPHASE_OP_BOOLEAN}},
    [GAIN] = {"gain", POLYPHASE_OP_REAL, 0, {.kind = POLYPHASE_OP_REAL, .real = 1}},
};
static const polyphase_op_onnx_claim onnx_claims[] = {{"stylegan", "UpFirDn2d"}};
static const char* const torch_claims[] = {"stylegan::upfirdn2d.default"};

static const polyphase_op upfirdn2d = {
    .struct_size = sizeof(polyphase_op),
    .name = "upfirdn2d",
    .version = 1,
    .doc = "Zero insertion, padding or cropping, an FIR filter per channel, and decimation, as in StyleGAN.",
    .input_count = 2,
    .inputs = inputs,
    .output_count = 1,
    .outputs = outputs,
    .attribute_count = sizeof(attributes) / sizeof(attributes[0]),
    .attributes = attributes,
    .onnx_claim_count = 1,
    .onnx_claims = onnx_claims,
    .torch_claim_count = 1,
    .torch_claims = torch_claims,
    .shape = shape,
    .plan = plan,
    .run = run,
};
static const polyphase_op* const ops[] = {&upfirdn2d};
static const polyphase_plugin plugin = {
    .abi = POLYPHASE_OP_ABI,
    .struct_size = sizeof(polyphase_plugin),
    .name = "stylegan",
    .op_count = 1,
    .ops = ops,
};

POLYPHASE_PLUGIN_EXPORT const polyphase_plugin* polyphase_get_plugin(void) { return &plugin; }
