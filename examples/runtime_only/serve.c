// Loads an engine from memory with libpolyphase_runtime and answers requests from standard input, as a small service would.
//
//   serve ENGINE.ppe HEIGHT WIDTH < IN > OUT
//
// Each request is HEIGHT * WIDTH floats, one channel, row by row; each answer the floats of the engine's output. Memory is
// got once: every run writes into the same output tensor.
#include <polyphase/c_api.h>
#include <polyphase/dlpack.h>

#include <stdio.h>
#include <stdlib.h>

static void check(polyphase_status status, polyphase_error* error) {
  if (status == POLYPHASE_OK) return;
  fprintf(stderr, "serve: %s: %s\n", polyphase_status_name(status), polyphase_error_text(error));
  polyphase_error_free(error);
  exit(1);
}

// As where an engine comes from a package, a database or the network.
static void* read_file(const char* path, size_t* size_bytes) {
  FILE* file = fopen(path, "rb");
  char* bytes = NULL;
  size_t held = 0;
  *size_bytes = 0;
  while (file != NULL) {
    if (*size_bytes == held) bytes = realloc(bytes, held = 2 * held + 65536);
    if (bytes == NULL) break;
    const size_t got = fread(bytes + *size_bytes, 1, held - *size_bytes, file);
    if (got == 0) {
      fclose(file);
      return bytes;
    }
    *size_bytes += got;
  }
  fprintf(stderr, "serve: cannot read %s\n", path);
  exit(1);
}

static size_t element_count(const DLTensor* tensor) {
  size_t count = 1;
  for (int32_t axis = 0; axis < tensor->ndim; ++axis) count *= (size_t)tensor->shape[axis];
  return count;
}

int main(int argc, char** argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: serve ENGINE.ppe HEIGHT WIDTH < IN > OUT\n");
    return 2;
  }
  polyphase_error* error = NULL;
  polyphase_engine* engine = NULL;
  size_t size_bytes = 0;
  void* bytes = read_file(argv[1], &size_bytes);
  check(polyphase_engine_from_bytes(bytes, size_bytes, &engine, &error), error);
  free(bytes);

  polyphase_session_options options = {0};
  options.struct_size = sizeof(options);
  options.threads = 2;
  polyphase_session* session = NULL;
  check(polyphase_session_create(engine, &options, &session, &error), error);

  const int64_t sizes[4] = {1, 1, atoll(argv[2]), atoll(argv[3])};
  struct DLManagedTensorVersioned* input = NULL;
  struct DLManagedTensorVersioned* output = NULL;
  check(polyphase_tensor_allocate(POLYPHASE_F32, 4, sizes, &input, &error), error);
  const struct DLManagedTensorVersioned* inputs[1];
  inputs[0] = input;
  int32_t rank = 0;
  int64_t output_sizes[8];
  check(polyphase_session_output_sizes(session, 1, inputs, 0, &rank, output_sizes, &error), error);
  check(polyphase_tensor_allocate(POLYPHASE_F32, rank, output_sizes, &output, &error), error);

  const size_t asked = element_count(&input->dl_tensor);
  const size_t answered = element_count(&output->dl_tensor);
  while (fread(input->dl_tensor.data, sizeof(float), asked, stdin) == asked) {
    check(polyphase_session_run_into(session, 1, inputs, 1, &output, NULL, &error), error);
    if (fwrite(output->dl_tensor.data, sizeof(float), answered, stdout) != answered) return 1;
  }
  polyphase_tensor_free(output);
  polyphase_tensor_free(input);
  polyphase_session_free(session);
  polyphase_engine_free(engine);
  return 0;
}
