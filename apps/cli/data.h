// Inputs and outputs on the command line: --inputs, --outputs, --input, --output, and how images and sounds become
// tensors.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/image.h"
#include "io/npz.h"
#include "polyphase/polyphase.h"

namespace CLI {  // NOLINT(readability-identifier-naming): that of the library
class App;
}

namespace polyphase::cli {

struct InputFlags {
  std::string archive;             // --inputs
  std::vector<std::string> files;  // --input
  std::string range = "0..1";
  std::vector<double> mean;
  std::vector<double> deviation;
  std::string channels;
};

struct OutputFlags {
  std::string archive;             // --outputs
  std::vector<std::string> files;  // --output
  std::string range;               // empty: the inputs'
  int sample_rate = 0;             // 0: that of the sound that came in, else 22050
};

void add_input_flags(CLI::App& command, InputFlags& flags);
void add_output_flags(CLI::App& command, OutputFlags& flags);

struct Inputs {
  std::vector<api::Tensor> tensors;  // by position
  io::ImageOptions image;
  int sample_rate = 0;             // of the last sound read
  std::vector<std::string> files;  // where they came from

  // A refusal of the sizes, with the files that they came from and what to do.
  Error explain(Error error) const;
};

// Reads every input of the engine, and converts what NumPy cannot write (bf16 from f32). Error: an input is missing,
// twice, unknown, of another dtype.
Result<Inputs> read_inputs(const api::Engine& engine, const InputFlags& flags);
// Before the run, what write_outputs would refuse after it: names, kinds of file, folders.
Result<void> check_output_flags(const api::Engine& engine, const OutputFlags& flags);
Result<void> write_outputs(const api::Engine& engine, const std::vector<api::Tensor>& outputs, const OutputFlags& flags,
                           const Inputs& inputs);

// What stands behind these, for those who read and write in other ways.
bool ends_with(const std::string& path, std::string_view extension);
io::ImageSlot slot_of(const api::Port& port);
Result<io::ImageOptions> image_options(const InputFlags& flags);
Result<io::ImageOptions> output_image_options(const OutputFlags& flags, const io::ImageOptions& input);
int output_rate(const OutputFlags& flags, int input_rate);

// The output that "NAME=FILE" or "FILE" means, and the file.
struct OutputWord {
  std::size_t index = 0;
  std::string path;
};
Result<OutputWord> output_word(const std::vector<api::Port>& ports, const std::string& word);

std::vector<api::TensorView> views_of(const std::vector<api::Tensor>& tensors);
std::vector<std::vector<std::int64_t>> sizes_of(const std::vector<api::Tensor>& tensors);

// Names like NumPy's arr_0 mean positions; otherwise the port of that name. -1: none.
int port_index(const std::vector<api::Port>& ports, const std::string& name);

}  // namespace polyphase::cli
