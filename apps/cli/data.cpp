// Files to inputs, outputs to files.
#include "cli/data.h"

#include <CLI/App.hpp>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <set>

#include "cli/sizes.h"
#include "cli/terminal.h"
#include "io/npy.h"
#include "io/png.h"
#include "io/try.h"
#include "io/wav.h"
#include "io/whole_file.h"

namespace polyphase::cli {
namespace {

constexpr int default_sample_rate = 22050;

Error refuse_data(std::string message, std::string hint = {}) {
  return {ErrorCode::invalid_argument, std::move(message), std::move(hint)};
}

std::string names_of(const std::vector<api::Port>& ports) {
  std::vector<std::string> names;
  for (const api::Port& port : ports) names.push_back("'" + plain(port.name) + "'");
  return names.empty() ? "none" : join(names, ", ");
}

// "-1..1", "0..255".
Result<void> parse_value_range(const std::string& text, const std::string& flag, io::ImageOptions& options) {
  const std::size_t dots = text.find("..");
  const auto real = [](const std::string& word, double& value) {
    char* end = nullptr;
    value = std::strtod(word.c_str(), &end);
    return !word.empty() && end == word.c_str() + word.size();
  };
  const bool known =
      dots != std::string::npos && real(text.substr(0, dots), options.low) && real(text.substr(dots + 2), options.high);
  if (!known || !std::isfinite(options.high - options.low) || options.low >= options.high) {
    return refuse_data(flag + " is '" + text + "', expected LOW..HIGH with LOW below HIGH.",
                       "For example " + flag + "=-1..1 or " + flag + " 0..255.");
  }
  return {};
}

std::uint16_t bf16_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);  // nearest, ties to even
}

// What NumPy cannot name: bf16 comes as f32, 4-bit integers as 8-bit ones, f8e5m2 as raw bytes.
Result<api::Tensor> as_dtype(const api::Tensor& from, DType wanted) {
  const bool narrow = wanted == DType::bf16 && from.dtype() == DType::f32;
  const bool same_bytes = (wanted == DType::i4 && from.dtype() == DType::i8) ||
                          (wanted == DType::u4 && from.dtype() == DType::u8) ||
                          (wanted == DType::f8e5m2 && from.dtype() == DType::f8e4m3);
  if (!narrow && !same_bytes) return from;
  IO_TRY(api::Tensor to, api::Tensor::allocate(wanted, from.sizes()));
  if (same_bytes) {
    if (from.size_bytes() > 0) std::memcpy(to.data(), from.data(), from.size_bytes());
    return to;
  }
  for (std::int64_t i = 0; i < from.element_count(); ++i) to.as<std::uint16_t>()[i] = bf16_bits(from.as<float>()[i]);
  return to;
}

std::string numpy_name(DType dtype) {
  switch (dtype) {
    case DType::f32:
    case DType::bf16:
      return "numpy.float32";
    case DType::f64:
      return "numpy.float64";
    case DType::f16:
      return "numpy.float16";
    case DType::boolean:
      return "numpy.bool_";
    case DType::f8e4m3:
      return "ml_dtypes.float8_e4m3fn";
    case DType::f8e5m2:
      return "ml_dtypes.float8_e5m2";
    default:
      break;
  }
  const std::string width = std::to_string(size_bytes(dtype) * 8);
  return std::string(is_signed(dtype) ? "numpy.int" : "numpy.uint") + width;
}

class InputReader {
 public:
  InputReader(const api::Engine& engine, Inputs& inputs)
      : ports_(engine.inputs()), inputs_(inputs), given_(ports_.size(), false) {
    inputs_.tensors.resize(ports_.size());
  }

  Result<void> archive(const std::string& path) {
    IO_TRY(const std::vector<io::NamedTensor> members, io::read_npz(path));
    for (const io::NamedTensor& member : members) {
      const int index = port_index(ports_, member.name);
      if (index < 0) {
        return refuse_data("'" + path + "' holds '" + plain(member.name) + "', which is no input.",
                           "The inputs are " + names_of(ports_) + ".");
      }
      IO_TRY_VOID(set(index, member.tensor, path));
    }
    return {};
  }

  Result<void> file(const std::string& word) {
    IO_TRY(const NamedWord named, split_name(word, "--input"));
    if (named.name.empty() && ports_.size() != 1) {
      return refuse_data("--input '" + word + "' names no input.",
                         "Write --input NAME=FILE; the inputs are " + names_of(ports_) + ".");
    }
    const int index = named.name.empty() ? 0 : port_index(ports_, named.name);
    if (index < 0)
      return refuse_data("--input names '" + named.name + "', which is no input.",
                         "The inputs are " + names_of(ports_) + ".");
    const api::Port& port = ports_[static_cast<std::size_t>(index)];
    if (ends_with(named.rest, ".npy")) {
      IO_TRY(const api::Tensor tensor, io::read_npy_file(named.rest));
      return set(index, tensor, named.rest);
    }
    if (ends_with(named.rest, ".png")) {
      IO_TRY(const io::Image image, io::read_png(named.rest));
      IO_TRY(const api::Tensor tensor, io::tensor_from_image(image, slot_of(port), inputs_.image, named.rest));
      return set(index, tensor, named.rest);
    }
    if (ends_with(named.rest, ".wav")) {
      IO_TRY(io::Sound sound, io::read_wav(named.rest, static_cast<int>(port.sizes.size())));
      inputs_.sample_rate = sound.sample_rate;
      return set(index, sound.tensor, named.rest);
    }
    return refuse_data("'" + named.rest + "' ends in none of .npy, .png, .wav.",
                       "Give archives with --inputs FILE.npz.");
  }

  Result<void> finish() const {
    for (std::size_t i = 0; i < ports_.size(); ++i) {
      if (given_[i]) continue;
      return refuse_data("input '" + plain(ports_[i].name) + "' (" + std::string(name_of(ports_[i].dtype)) + " " +
                             shape_text(ports_[i].sizes) + ") is not given.",
                         "Add it to the archive of --inputs, or give --input " + plain(ports_[i].name) + "=FILE.npy.");
    }
    return {};
  }

 private:
  Result<void> set(int index, const api::Tensor& tensor, const std::string& path) {
    const auto i = static_cast<std::size_t>(index);
    const api::Port& port = ports_[i];
    if (given_[i]) return refuse_data("input '" + plain(port.name) + "' is given twice.", "Give it once.");
    given_[i] = true;
    if (std::find(inputs_.files.begin(), inputs_.files.end(), path) == inputs_.files.end())
      inputs_.files.push_back(path);
    IO_TRY(inputs_.tensors[i], as_dtype(tensor, port.dtype));
    if (inputs_.tensors[i].dtype() == port.dtype) return {};
    return refuse_data("'" + path + "' gives input '" + plain(port.name) + "' as " +
                           std::string(name_of(tensor.dtype())) + ", expected " + std::string(name_of(port.dtype)) +
                           ".",
                       "Convert it first: array.astype(" + numpy_name(port.dtype) + ").");
  }

  const std::vector<api::Port>& ports_;
  Inputs& inputs_;
  std::vector<bool> given_;
};

Result<void> write_file(const api::Tensor& tensor, const std::string& path, const OutputFlags& flags,
                        const Inputs& inputs) {
  if (ends_with(path, ".npy")) return io::write_npy_file(path, tensor);
  if (ends_with(path, ".png")) {
    IO_TRY(const io::ImageOptions options, output_image_options(flags, inputs.image));
    IO_TRY(const io::Image image, io::image_from_tensor(tensor, options, path));
    return io::write_png(path, image);
  }
  return io::write_wav(path, tensor, output_rate(flags, inputs.sample_rate));
}

}  // namespace

bool ends_with(const std::string& path, std::string_view extension) {
  if (path.size() < extension.size()) return false;
  return std::equal(extension.rbegin(), extension.rend(), path.rbegin(), [](char a, char b) {
    return a == ((b >= 'A' && b <= 'Z') ? static_cast<char>(b - 'A' + 'a') : b);
  });
}

Result<io::ImageOptions> image_options(const InputFlags& flags) {
  io::ImageOptions options;
  IO_TRY_VOID(parse_value_range(flags.range, "--range", options));
  options.mean = flags.mean;
  options.deviation = flags.deviation;
  if (std::find(flags.deviation.begin(), flags.deviation.end(), 0.0) != flags.deviation.end())
    return refuse_data("--std is 0.", "Values are divided by it: give numbers above 0.");
  if (!flags.channels.empty()) {
    IO_TRY(options.channels, io::channels_from_word(flags.channels));
  }
  return options;
}

Result<io::ImageOptions> output_image_options(const OutputFlags& flags, const io::ImageOptions& input) {
  io::ImageOptions options = input;
  if (!flags.range.empty()) IO_TRY_VOID(parse_value_range(flags.range, "--output-range", options));
  return options;
}

int output_rate(const OutputFlags& flags, int input_rate) {
  return flags.sample_rate != 0 ? flags.sample_rate : input_rate != 0 ? input_rate : default_sample_rate;
}

io::ImageSlot slot_of(const api::Port& port) {
  io::ImageSlot slot;
  slot.dtype = port.dtype;
  slot.rank = static_cast<int>(port.sizes.size());
  const int axis = slot.rank - 3;
  if (axis >= 0) {
    const std::string& size = port.sizes[static_cast<std::size_t>(axis)];
    std::from_chars(size.data(), size.data() + size.size(), slot.channels);  // a name leaves 0: any
  }
  return slot;
}

Result<OutputWord> output_word(const std::vector<api::Port>& ports, const std::string& word) {
  IO_TRY(NamedWord named, split_name(word, "--output"));
  const int index = named.name.empty() && ports.size() == 1 ? 0 : port_index(ports, named.name);
  if (index < 0) {
    return refuse_data("--output '" + word + "' names no output.",
                       "Write --output NAME=FILE; the outputs are " + names_of(ports) + ".");
  }
  return OutputWord{static_cast<std::size_t>(index), std::move(named.rest)};
}

Error Inputs::explain(Error error) const {
  if (error.code != ErrorCode::shape_mismatch || !error.node.empty()) return error;
  return std::move(error).within("inputs from " + join(files, ", "));
}

Result<void> check_output_flags(const api::Engine& engine, const OutputFlags& flags) {
  std::set<std::string> paths;
  if (!flags.archive.empty()) paths.insert(flags.archive);
  for (const std::string& word : flags.files) {
    IO_TRY(const OutputWord output, output_word(engine.outputs(), word));
    if (!ends_with(output.path, ".npy") && !ends_with(output.path, ".png") && !ends_with(output.path, ".wav")) {
      return refuse_data("'" + output.path + "' ends in none of .npy, .png, .wav.",
                         "Write archives with --outputs FILE.npz.");
    }
    if (!paths.insert(output.path).second)
      return refuse_data("'" + output.path + "' is written twice.", "Give each output a file of its own.");
  }
  if (!flags.range.empty()) {
    io::ImageOptions ignored;
    IO_TRY_VOID(parse_value_range(flags.range, "--output-range", ignored));
  }
  // A file that cannot be made is known now, not after a long run.
  for (const std::string& path : paths) IO_TRY_VOID(io::NewFile::create(path));
  return {};
}

int port_index(const std::vector<api::Port>& ports, const std::string& name) {
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (ports[i].name == name) return static_cast<int>(i);
  }
  constexpr std::string_view positional = "arr_";
  std::size_t index = 0;
  if (name.rfind(positional, 0) != 0) return -1;
  const char* const last = name.data() + name.size();
  const auto [end, failure] = std::from_chars(name.data() + positional.size(), last, index);
  return failure == std::errc() && end == last && index < ports.size() ? static_cast<int>(index) : -1;
}

void add_input_flags(CLI::App& command, InputFlags& flags) {
  command.add_option("--inputs", flags.archive, "Archive with an array for every input")->type_name("FILE.npz");
  command
      .add_option(
          "--input", flags.files,
          "One input: NAME=FILE.npy, .png or .wav; NAME= may be left out where there is one input. May be repeated")
      ->allow_extra_args(false)
      ->type_name("NAME=FILE");
  command
      .add_option("--range", flags.range,
                  "What black and white of an image become (default 0..1); applies to .png outputs too")
      ->type_name("LOW..HIGH");
  command
      .add_option("--mean", flags.mean,
                  "Subtracted from image inputs after --range, one number or one per channel (default 0)")
      ->delimiter(',')
      ->type_name("M,M,M");
  command
      .add_option("--std", flags.deviation,
                  "Image inputs are divided by it after --mean, one number or one per channel (default 1)")
      ->delimiter(',')
      ->type_name("S,S,S");
  command.add_option(
      "--channels", flags.channels,
      "rgb, bgr, grey or rgba (default: as many as the input has, rgb where it leaves that open). grey is "
      "0.299 R + 0.587 G + 0.114 B");
}

void add_output_flags(CLI::App& command, OutputFlags& flags) {
  command.add_option("--outputs", flags.archive, "Archive for all outputs")->type_name("FILE.npz");
  command
      .add_option(
          "--output", flags.files,
          "One output: NAME=FILE.npy, .png or .wav; NAME= may be left out where there is one output. May be repeated")
      ->allow_extra_args(false)
      ->type_name("NAME=FILE");
  command.add_option("--output-range", flags.range, "What becomes black and white in .png outputs (default: --range)")
      ->type_name("LOW..HIGH");
  command
      .add_option("--sample-rate", flags.sample_rate,
                  "Samples a second of .wav outputs (default: that of the .wav input, else 22050)")
      ->check(CLI::Range(1, 10'000'000))
      ->type_name("HZ");
}

Result<Inputs> read_inputs(const api::Engine& engine, const InputFlags& flags) {
  Inputs inputs;
  IO_TRY(inputs.image, image_options(flags));
  InputReader reader(engine, inputs);
  if (!flags.archive.empty()) IO_TRY_VOID(reader.archive(flags.archive));
  for (const std::string& word : flags.files) IO_TRY_VOID(reader.file(word));
  IO_TRY_VOID(reader.finish());
  return inputs;
}

Result<void> write_outputs(const api::Engine& engine, const std::vector<api::Tensor>& outputs, const OutputFlags& flags,
                           const Inputs& inputs) {
  const std::vector<api::Port>& ports = engine.outputs();
  for (const std::string& word : flags.files) {
    IO_TRY(const OutputWord output, output_word(ports, word));
    IO_TRY_VOID(write_file(outputs[output.index], output.path, flags, inputs));
  }
  if (flags.archive.empty()) return {};
  std::vector<io::NamedTensor> members;
  for (std::size_t i = 0; i < ports.size(); ++i) members.push_back({ports[i].name, outputs[i]});
  return io::write_npz(flags.archive, members);
}

std::vector<api::TensorView> views_of(const std::vector<api::Tensor>& tensors) {
  std::vector<api::TensorView> out;
  for (const api::Tensor& tensor : tensors) out.push_back(tensor.view());
  return out;
}

std::vector<std::vector<std::int64_t>> sizes_of(const std::vector<api::Tensor>& tensors) {
  std::vector<std::vector<std::int64_t>> out;
  for (const api::Tensor& tensor : tensors) out.push_back(tensor.sizes());
  return out;
}

}  // namespace polyphase::cli
