// Compiles an ONNX model and runs it on one picture, in C99.
//
//   upscale MODEL.onnx HEIGHT WIDTH IN OUT
//
// IN holds HEIGHT * WIDTH numbers as the machine stores floats, one channel, row by row; OUT becomes what the model makes of them.
#include <polyphase/c_api.h>
#include <polyphase/dlpack.h>

#include <stdio.h>
#include <stdlib.h>

// Says what went wrong, and ends: the text names the node, what was found, what was expected and what to do.
static void check(polyphase_status status, polyphase_error* error) {
  if (status == POLYPHASE_OK) return;
  fprintf(stderr, "upscale: %s: %s\n", polyphase_status_name(status), polyphase_error_text(error));
  polyphase_error_free(error);
  exit(1);
}

static float* read_floats(const char* path, size_t count) {
  float* numbers = malloc(count * sizeof(float));
  FILE* file = fopen(path, "rb");
  if (numbers == NULL || file == NULL || fread(numbers, sizeof(float), count, file) != count) {
    fprintf(stderr, "upscale: cannot read %zu floats from %s\n", count, path);
    exit(1);
  }
  fclose(file);
  return numbers;
}

static void print_port(const char* word, const polyphase_port* port) {
  printf("%s %s:", word, port->name);
  for (int32_t axis = 0; axis < port->rank; ++axis) printf(" %s", port->sizes[axis]);
  printf("\n");
}

int main(int argc, char** argv) {
  if (argc != 6) {
    fprintf(stderr, "usage: upscale MODEL.onnx HEIGHT WIDTH IN OUT\n");
    return 2;
  }
  polyphase_error* error = NULL;
  polyphase_engine* engine = NULL;
  check(polyphase_compile(argv[1], NULL, &engine, &error), error);

  polyphase_port port;
  check(polyphase_engine_input(engine, 0, &port, &error), error);
  print_port("input", &port);
  check(polyphase_engine_output(engine, 0, &port, &error), error);
  print_port("output", &port);

  polyphase_session* session = NULL;
  check(polyphase_session_create(engine, NULL, &session, &error), error);
  polyphase_engine_free(engine);  // the session keeps what it needs

  const int64_t sizes[4] = {1, 1, atoll(argv[2]), atoll(argv[3])};
  float* pixels = read_floats(argv[4], (size_t)(sizes[2] * sizes[3]));
  struct DLManagedTensorVersioned* input = NULL;
  check(polyphase_tensor_borrow(POLYPHASE_F32, 4, sizes, NULL, pixels, &input, &error), error);

  polyphase_run_options options = {0};
  options.struct_size = sizeof(options);
  options.timeout_seconds = 60;
  struct DLManagedTensorVersioned* output = NULL;
  const struct DLManagedTensorVersioned* inputs[1];
  inputs[0] = input;
  check(polyphase_session_run(session, 1, inputs, 1, &output, &options, &error), error);

  const DLTensor* result = &output->dl_tensor;
  size_t count = 1;
  for (int32_t axis = 0; axis < result->ndim; ++axis) count *= (size_t)result->shape[axis];
  FILE* file = fopen(argv[5], "wb");
  if (file == NULL || fwrite(result->data, sizeof(float), count, file) != count || fclose(file) != 0) {
    fprintf(stderr, "upscale: cannot write %s\n", argv[5]);
    return 1;
  }
  printf("%lld x %lld, by Polyphase %s\n", (long long)result->shape[result->ndim - 2],
         (long long)result->shape[result->ndim - 1], polyphase_version());
  polyphase_tensor_free(output);
  polyphase_tensor_free(input);
  polyphase_session_free(session);
  free(pixels);
  return 0;
}
