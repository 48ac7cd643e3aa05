// Sources and sinks of tiles over files.
#include "cli/tile_files.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "cli/sizes.h"
#include "io/npy_windows.h"
#include "io/png.h"
#include "io/try.h"
#include "io/wav.h"

namespace polyphase::cli {
namespace {

using Index = std::span<const std::int64_t>;

api::TensorView part_of(const api::Tensor& whole, Index first, const std::vector<std::int64_t>& sizes) {
  api::TensorView out = whole.view();
  out.strides.assign(out.sizes.size(), 1);
  for (std::size_t i = out.sizes.size(); i-- > 1;) out.strides[i - 1] = out.strides[i] * out.sizes[i];
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < first.size(); ++i) offset += first[i] * out.strides[i];
  out.sizes = sizes;
  out.data = static_cast<std::byte*>(out.data) + offset * static_cast<std::int64_t>(size_bytes(out.dtype));
  return out;
}

api::TileSource memory_source(const api::Tensor& tensor) {
  return {tensor.sizes(), [tensor](Index first, const api::TensorView& window) -> Result<void> {
            IO_TRY(const api::Tensor part, io::dense_copy(part_of(tensor, first, window.sizes)));
            if (part.size_bytes() > 0) std::memcpy(window.data, part.data(), part.size_bytes());
            return {};
          }};
}

// Rows of an image, of which those between the first and the last that a tile reads are kept.
class PngSource {
 public:
  PngSource(std::string path, io::PngRows rows, io::ImageSlot slot, const io::ImageOptions& options)
      : path_(std::move(path)), rows_(std::move(rows)), slot_(slot), options_(options) {}

  // Of the whole image as a tensor; refuses what tensor_from_image refuses.
  Result<std::vector<std::int64_t>> sizes() const {
    io::Image line = rows_.head();
    line.height = 1;
    line.samples.assign(static_cast<std::size_t>(line.width * line.channels), 0);
    IO_TRY(const api::Tensor tensor, io::tensor_from_image(line, slot_, options_, path_));
    std::vector<std::int64_t> sizes = tensor.sizes();
    sizes[sizes.size() - 2] = rows_.head().height;
    return sizes;
  }

  Result<void> read(Index first, const api::TensorView& window) {
    const std::size_t row_axis = first.size() - 2;
    IO_TRY_VOID(hold(first[row_axis], window.sizes[row_axis]));
    io::Image part = rows_.head();
    const std::int64_t left = first[row_axis + 1];
    part.height = window.sizes[row_axis];
    part.width = window.sizes[row_axis + 1];
    const std::int64_t all = rows_.head().width * part.channels;
    for (std::int64_t y = 0; y < part.height; ++y) {
      const auto from = kept_.begin() + (first[row_axis] - first_kept_ + y) * all + left * part.channels;
      part.samples.insert(part.samples.end(), from, from + part.width * part.channels);
    }
    IO_TRY(const api::Tensor tensor, io::tensor_from_image(part, slot_, options_, path_));
    std::memcpy(window.data, tensor.data(), tensor.size_bytes());
    return {};
  }

 private:
  Result<void> hold(std::int64_t first, std::int64_t count) {
    const std::int64_t all = rows_.head().width * rows_.head().channels;
    if (first < first_kept_) {  // from the top again
      IO_TRY(io::PngRows again, io::PngRows::open(path_));
      rows_ = std::move(again);
      kept_.clear();
      first_kept_ = end_ = 0;
    }
    while (end_ < first) {
      kept_.resize(static_cast<std::size_t>(all));
      IO_TRY_VOID(rows_.read(1, kept_.data()));
      first_kept_ = ++end_;
      kept_.clear();
    }
    kept_.erase(kept_.begin(), kept_.begin() + (first - first_kept_) * all);
    first_kept_ = first;
    const std::int64_t more = first + count - end_;
    if (more <= 0) return {};
    const std::size_t held = kept_.size();
    kept_.resize(held + static_cast<std::size_t>(more * all));
    end_ += more;
    return rows_.read(more, kept_.data() + held);
  }

  std::string path_;
  io::PngRows rows_;
  io::ImageSlot slot_;
  io::ImageOptions options_;
  std::vector<std::uint16_t> kept_;  // rows [first_kept_, end_)
  std::int64_t first_kept_ = 0;
  std::int64_t end_ = 0;  // the next row that the file gives
};

// Nothing in `read`: the file must be read as a whole, or cannot be, for which read_inputs has the words.
Result<api::TileSource> file_source(const std::string& path, const api::Port& port, Inputs& known) {
  if (ends_with(path, ".npy")) {
    IO_TRY(io::NpyWindows opened, io::NpyWindows::open(path));
    if (!opened.is_plain() || opened.dtype() != port.dtype) return api::TileSource{};
    const auto file = std::make_shared<io::NpyWindows>(std::move(opened));
    return api::TileSource{file->sizes(),
                           [file](Index first, const api::TensorView& to) { return file->read(first, to); }};
  }
  if (ends_with(path, ".png")) {
    IO_TRY(io::PngRows rows, io::PngRows::open(path));
    if (!rows.is_plain()) return api::TileSource{};
    const auto file = std::make_shared<PngSource>(path, std::move(rows), slot_of(port), known.image);
    IO_TRY(const std::vector<std::int64_t> sizes, file->sizes());
    return api::TileSource{sizes, [file](Index first, const api::TensorView& to) { return file->read(first, to); }};
  }
  if (ends_with(path, ".wav") && port.dtype == DType::f32) {
    IO_TRY(io::WavParts parts, io::WavParts::open(path, static_cast<int>(port.sizes.size())));
    const auto file = std::make_shared<io::WavParts>(std::move(parts));
    known.sample_rate = file->sample_rate();
    return api::TileSource{file->sizes(), [file](Index first, const api::TensorView& to) {
                             return file->read(first.back(), to.sizes.back(), static_cast<float*>(to.data));
                           }};
  }
  return api::TileSource{};
}

// ---------------------------------------------------------------- sinks

Error out_of_order(const std::string& path) {
  return {ErrorCode::unsupported,
          "cannot write '" + path + "' in tiles: the network turns its axes, so tiles do not come in the file's order.",
          "Write it as .npy."};
}

// Rows of 8-bit samples, as wide as the image: filled by the tiles beside each other, then written.
class PngSink {
 public:
  PngSink(std::string path, io::ImageOptions options, std::vector<std::int64_t> sizes)
      : path_(std::move(path)), options_(std::move(options)), width_(sizes.back()), height_(sizes[sizes.size() - 2]) {}

  Result<void> take(Index first, const api::TensorView& window) {
    const std::size_t row_axis = first.size() - 2;
    IO_TRY(const api::Tensor dense, io::dense_copy(window));
    IO_TRY(const io::Image part, io::image_from_tensor(dense, options_, path_));
    if (!file_) {
      IO_TRY(io::NewPngRows made, io::NewPngRows::create(path_, width_, height_, part.channels));
      file_ = std::make_unique<io::NewPngRows>(std::move(made));
    }
    const std::int64_t row = part.width * part.channels;
    const std::int64_t whole_row = width_ * part.channels;
    if (first[row_axis] != next_row_ || first[row_axis + 1] != next_column_) return out_of_order(path_);
    band_.resize(static_cast<std::size_t>(part.height * whole_row));
    for (std::int64_t y = 0; y < part.height; ++y) {
      const auto from = part.samples.begin() + y * row;
      std::transform(from, from + row, band_.begin() + y * whole_row + first[row_axis + 1] * part.channels,
                     [](std::uint16_t sample) { return static_cast<std::uint8_t>(sample); });
    }
    next_column_ += part.width;
    if (next_column_ < width_) return {};
    next_column_ = 0;
    next_row_ += part.height;
    return file_->write(part.height, band_.data());
  }

  Result<void> finish() {
    if (next_row_ != height_ || !file_) return out_of_order(path_);
    return file_->finish();
  }

 private:
  std::string path_;
  io::ImageOptions options_;
  std::int64_t width_;
  std::int64_t height_;
  std::unique_ptr<io::NewPngRows> file_;  // with the first tile, which tells the channels
  std::vector<std::uint8_t> band_;
  std::int64_t next_row_ = 0;
  std::int64_t next_column_ = 0;
};

struct FileSink {
  api::TileSink take;  // the output's number means nothing to it
  std::function<Result<void>()> finish;
};

Result<FileSink> npy_sink(const std::string& path, DType dtype, const std::vector<std::int64_t>& sizes) {
  IO_TRY(io::NewNpyWindows made, io::NewNpyWindows::create(path, dtype, sizes));
  const auto file = std::make_shared<io::NewNpyWindows>(std::move(made));
  return FileSink{
      [file](std::size_t, Index first, const api::TensorView& window) { return file->write(first, window); },
      [file] { return file->finish(); }};
}

Result<FileSink> wav_sink(const std::string& path, DType dtype, const std::vector<std::int64_t>& sizes, int rate) {
  IO_TRY(io::NewWavParts made, io::NewWavParts::create(path, dtype, sizes, rate));
  const auto file = std::make_shared<io::NewWavParts>(std::move(made));
  const auto next = std::make_shared<std::int64_t>(0);
  return FileSink{[=](std::size_t, Index first, const api::TensorView& window) -> Result<void> {
                    if (first.back() != *next) return out_of_order(path);
                    *next += window.sizes.back();
                    IO_TRY(const api::Tensor part, io::dense_copy(window));
                    return file->write(part);
                  },
                  [file] { return file->finish(); }};
}

FileSink png_sink(const std::string& path, const io::ImageOptions& options, const std::vector<std::int64_t>& sizes) {
  const auto file = std::make_shared<PngSink>(path, options, sizes);
  return {[file](std::size_t, Index first, const api::TensorView& window) { return file->take(first, window); },
          [file] { return file->finish(); }};
}

void copy_window(const api::TensorView& from, const api::TensorView& to) {
  std::vector<std::int64_t> index(from.sizes.size(), 0);
  const auto width = static_cast<std::int64_t>(size_bytes(from.dtype));
  for (;;) {
    std::int64_t a = 0;
    std::int64_t b = 0;
    for (std::size_t i = 0; i < index.size(); ++i) {
      a += index[i] * from.strides[i];
      b += index[i] * to.strides[i];
    }
    std::memcpy(static_cast<std::byte*>(to.data) + b * width, static_cast<const std::byte*>(from.data) + a * width,
                static_cast<std::size_t>(width));
    std::size_t axis = index.size();
    while (axis > 0 && ++index[axis - 1] == from.sizes[axis - 1]) index[--axis] = 0;
    if (axis == 0) return;
  }
}

// Of what NumPy's own names and the order of rows do not allow, all outputs as a whole.
Result<TileOutputs> memory_outputs(const api::Engine& engine, const OutputFlags& flags, const Inputs& inputs,
                                   const std::vector<std::vector<std::int64_t>>& sizes) {
  const auto tensors = std::make_shared<std::vector<api::Tensor>>();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    IO_TRY(api::Tensor tensor, api::Tensor::allocate(engine.outputs()[i].dtype, sizes[i]));
    tensors->push_back(std::move(tensor));
  }
  return TileOutputs{[tensors](std::size_t output, Index first, const api::TensorView& window) -> Result<void> {
                       copy_window(window, part_of((*tensors)[output], first, window.sizes));
                       return {};
                     },
                     [=] { return write_outputs(engine, *tensors, flags, inputs); }};
}

bool has_numpy_name(DType dtype) { return dtype != DType::bf16 && dtype != DType::i4 && dtype != DType::u4; }

}  // namespace

Result<TileInputs> open_tile_inputs(const api::Engine& engine, const InputFlags& flags) {
  TileInputs out;
  IO_TRY(out.known.image, image_options(flags));
  const std::vector<api::Port>& ports = engine.inputs();
  out.sources.resize(ports.size());
  std::size_t opened = 0;
  for (const std::string& word : flags.files) {
    IO_TRY(const NamedWord named, split_name(word, "--input"));
    const int index = named.name.empty() && ports.size() == 1 ? 0 : port_index(ports, named.name);
    if (index < 0 || out.sources[static_cast<std::size_t>(index)].read) break;
    api::TileSource& source = out.sources[static_cast<std::size_t>(index)];
    IO_TRY(source, file_source(named.rest, ports[static_cast<std::size_t>(index)], out.known));
    out.known.files.push_back(named.rest);
    if (source.read) ++opened;
  }
  if (flags.archive.empty() && opened == ports.size() && opened == flags.files.size()) return out;
  IO_TRY(out.known, read_inputs(engine, flags));
  out.sources.clear();
  for (const api::Tensor& tensor : out.known.tensors) out.sources.push_back(memory_source(tensor));
  return out;
}

Result<TileOutputs> open_tile_outputs(const api::Engine& engine, const OutputFlags& flags, const Inputs& inputs,
                                      const std::vector<std::vector<std::int64_t>>& sizes) {
  if (!flags.archive.empty()) return memory_outputs(engine, flags, inputs, sizes);
  const auto sinks = std::make_shared<std::vector<std::vector<FileSink>>>(sizes.size());
  for (const std::string& word : flags.files) {
    IO_TRY(const OutputWord output, output_word(engine.outputs(), word));
    const DType dtype = engine.outputs()[output.index].dtype;
    const auto& size = sizes[output.index];
    FileSink sink;
    if (ends_with(output.path, ".png") && size.size() >= 2) {
      IO_TRY(const io::ImageOptions options, output_image_options(flags, inputs.image));
      sink = png_sink(output.path, options, size);
    } else if (ends_with(output.path, ".npy") && has_numpy_name(dtype)) {
      IO_TRY(sink, npy_sink(output.path, dtype, size));
    } else if (ends_with(output.path, ".wav")) {
      IO_TRY(sink, wav_sink(output.path, dtype, size, output_rate(flags, inputs.sample_rate)));
    } else {
      return memory_outputs(engine, flags, inputs, sizes);
    }
    (*sinks)[output.index].push_back(std::move(sink));
  }
  return TileOutputs{[sinks](std::size_t output, Index first, const api::TensorView& window) -> Result<void> {
                       for (const FileSink& sink : (*sinks)[output]) IO_TRY_VOID(sink.take(output, first, window));
                       return {};
                     },
                     [sinks]() -> Result<void> {
                       for (const auto& of : *sinks) {
                         for (const FileSink& sink : of) IO_TRY_VOID(sink.finish());
                       }
                       return {};
                     }};
}

}  // namespace polyphase::cli
