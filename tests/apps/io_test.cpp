// Arrays, images and sounds: what is written comes back, and what is broken is refused in words.
#include <gtest/gtest.h>
#include <unistd.h>
#include <zip.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "io/npy.h"
#include "io/npz.h"
#include "io/png.h"
#include "io/wav.h"
#include "io/whole_file.h"

namespace polyphase::io {
namespace {

class Files : public testing::Test {
 protected:
  Files() : folder_(std::filesystem::temp_directory_path() / ("io_test_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~Files() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string put(const std::string& name, const std::string& contents) const {
    std::ofstream(path(name), std::ios::binary) << contents;
    return path(name);
  }
  std::string bytes_of(const std::string& name) const {
    std::ifstream in(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }

  std::filesystem::path folder_;
};

api::Tensor numbered(DType dtype, const std::vector<std::int64_t>& sizes) {
  api::Tensor tensor = api::Tensor::allocate(dtype, sizes).value();
  for (std::size_t i = 0; i < tensor.size_bytes(); ++i)
    tensor.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(i % 2 == 0 ? i : 60);
  if (dtype == DType::boolean) {
    for (std::size_t i = 0; i < tensor.size_bytes(); ++i) tensor.as<std::uint8_t>()[i] = i % 3 == 0;
  }
  return tensor;
}

void expect_same(const api::Tensor& a, const api::Tensor& b) {
  EXPECT_EQ(a.dtype(), b.dtype());
  ASSERT_EQ(a.sizes(), b.sizes());
  EXPECT_TRUE(a.size_bytes() == 0 || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

std::string npy(const std::string& header, const std::string& elements, char version = 1) {
  std::string out = std::string("\x93NUMPY") + version + '\0';
  out += static_cast<char>(header.size() & 255);
  out += static_cast<char>(header.size() >> 8);
  if (version > 1) out += std::string(2, '\0');
  return out + header + elements;
}

TEST_F(Files, NpyKeepsEveryDtypeAndShape) {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::boolean, DType::i8, DType::u8, DType::i16,
                            DType::u16, DType::i32, DType::u32, DType::i64, DType::u64, DType::f8e4m3}) {
    for (const std::vector<std::int64_t>& sizes :
         {std::vector<std::int64_t>{}, {5}, {2, 3}, {1, 0, 4}, {2, 1, 3, 1, 2, 1, 1, 2}}) {
      const api::Tensor tensor = numbered(dtype, sizes);
      ASSERT_TRUE(write_npy_file(path("a.npy"), tensor).ok());
      const auto back = read_npy_file(path("a.npy"));
      ASSERT_TRUE(back.ok()) << back.error().text();
      expect_same(tensor, *back);
    }
  }
}

TEST_F(Files, NpyOfBf16IsWrittenAsTheEqualF32AndReadFromRawPairs) {
  const api::Tensor tensor = numbered(DType::bf16, {2, 2});
  ASSERT_TRUE(write_npy_file(path("a.npy"), tensor).ok());
  const auto back = read_npy_file(path("a.npy"));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->dtype(), DType::f32);
  EXPECT_EQ(back->as<std::uint32_t>()[1], static_cast<std::uint32_t>(tensor.as<std::uint16_t>()[1]) << 16);
  const auto raw =
      read_npy_file(put("raw.npy", npy("{'descr': '|V2', 'fortran_order': False, 'shape': (2,), }\n", "abcd")));
  ASSERT_TRUE(raw.ok()) << raw.error().text();
  EXPECT_EQ(raw->dtype(), DType::bf16);
}

TEST_F(Files, NpyReadsOtherOrders) {
  const std::string elements("\0\1\0\2\0\3\0\4\0\5\0\6", 12);
  const auto big =
      read_npy_file(put("a.npy", npy("{'descr': '>i2', 'fortran_order': False, 'shape': (2, 3), }\n", elements)));
  ASSERT_TRUE(big.ok()) << big.error().text();
  EXPECT_EQ(big->as<std::int16_t>()[5], 6);
  const auto fortran =
      read_npy_file(put("a.npy", npy("{'shape': (2, 3), 'descr': '>i2', 'fortran_order': True}", elements, 2)));
  ASSERT_TRUE(fortran.ok()) << fortran.error().text();
  const std::vector<std::int16_t> found(fortran->as<std::int16_t>(), fortran->as<std::int16_t>() + 6);
  EXPECT_EQ(found, (std::vector<std::int16_t>{1, 3, 5, 2, 4, 6}));
  const auto truth = read_npy_file(
      put("a.npy", npy("{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }", std::string("\0\7\1", 3))));
  ASSERT_TRUE(truth.ok());
  EXPECT_EQ(truth->as<std::uint8_t>()[1], 1) << "any byte but 0 is true";
}

TEST_F(Files, BrokenNpyIsRefused) {
  const auto refusal = [&](const std::string& contents) {
    const auto tensor = read_npy_file(put("a.npy", contents));
    if (tensor.ok()) return std::string("accepted");
    std::string text = tensor.error().message;
    const std::size_t at = text.find(folder_.string());
    if (at != std::string::npos) text.erase(at, folder_.string().size() + 1);
    return text;
  };
  const auto with_header = [&](const std::string& header) { return refusal(npy(header, "1234")); };
  const std::string unsound = "'a.npy' is not a sound .npy array: ";
  EXPECT_EQ(refusal(""), "'a.npy' is empty.");
  EXPECT_EQ(refusal("012345678"), unsound + "it has 9 bytes, fewer than a header.");
  EXPECT_EQ(refusal("0123456789"), unsound + "it does not begin with \\x93NUMPY.");
  EXPECT_EQ(refusal(npy("{}", "", 9)), unsound + "its format version is 9, known are 1 to 3.");
  EXPECT_EQ(refusal(std::string("\x93NUMPY\1\0\xff\xff{", 11)), unsound + "it ends too early.");
  EXPECT_EQ(refusal(std::string("\x93NUMPY\2\0\xff\xff\xff\x7f{", 13)),
            unsound + "its header says it has 2147483647 bytes.");
  EXPECT_EQ(with_header("[]"), unsound + "its header lacks a dictionary at character 1.");
  EXPECT_EQ(with_header("{'descr': '<f4', 'fortran_order': False}"),
            unsound + "its header lacks descr, fortran_order and shape, each once at character 41.");
  EXPECT_EQ(with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'evil': 1}"),
            unsound + "its header has the key 'evil'.");
  EXPECT_EQ(with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }"),
            unsound + "its header lacks a size that is not negative at character 52.");
  EXPECT_EQ(with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"),
            unsound + "its header promises 8 bytes of elements, found 4.");
  EXPECT_EQ(with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }"),
            unsound + "its header promises too many bytes of elements, found 4.");
  EXPECT_EQ(with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }"),
            unsound + "it has more than 8 axes.");
  EXPECT_EQ(with_header("{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }"),
            "'a.npy' has elements of type '<c8', which no tensor can hold.");
  EXPECT_EQ(with_header("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"),
            "'a.npy' has elements of type '|O', which no tensor can hold.");
  EXPECT_EQ(with_header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }"),
            "'a.npy' is a structured array.");
  const std::string sound = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", "1234");
  for (std::size_t length = 0; length < sound.size(); ++length)
    EXPECT_NE(refusal(sound.substr(0, length)), "accepted") << length;
}

TEST_F(Files, NpzComesBackAndIsReproducible) {
  const std::vector<NamedTensor> tensors = {{"x", numbered(DType::f32, {2, 3})},
                                            {"deep/name", numbered(DType::i64, {})}};
  ASSERT_TRUE(write_npz(path("a.npz"), tensors).ok());
  ASSERT_TRUE(write_npz(path("b.npz"), tensors).ok());
  EXPECT_EQ(bytes_of("a.npz"), bytes_of("b.npz"));
  const auto back = read_npz(path("a.npz"));
  ASSERT_TRUE(back.ok()) << back.error().text();
  ASSERT_EQ(back->size(), 2U);
  EXPECT_EQ((*back)[1].name, "deep/name");
  expect_same((*back)[0].tensor, tensors[0].tensor);
  expect_same((*back)[1].tensor, tensors[1].tensor);
}

TEST_F(Files, BrokenNpzIsRefused) {
  ASSERT_TRUE(write_npz(path("a.npz"), std::vector<NamedTensor>{{"x", numbered(DType::f32, {64})}}).ok());
  std::string bytes = bytes_of("a.npz");
  bytes[200] = static_cast<char>(bytes[200] ^ 1);
  const auto flipped = read_npz(put("b.npz", bytes));
  ASSERT_FALSE(flipped.ok());
  EXPECT_NE(flipped.error().message.find("b.npz:x.npy' is damaged: CRC error"), std::string::npos)
      << flipped.error().message;
  for (const std::size_t length : {std::size_t{0}, std::size_t{10}, bytes.size() / 2, bytes.size() - 1}) {
    EXPECT_FALSE(read_npz(put("c.npz", bytes.substr(0, length))).ok()) << length;
  }
  EXPECT_EQ(read_npz(put("c.npz", "hello")).error().text().substr(path("c.npz").size() + 2),
            " is not an .npz archive: Not a zip archive. Write it with numpy.savez; give a single array with --input "
            "NAME=FILE.npy.");
  EXPECT_FALSE(read_npz(folder_.string()).ok());
  EXPECT_NE(read_npz(path("absent.npz")).error().message.find("No such file"), std::string::npos);
}

TEST_F(Files, ZipBombIsRefusedBeforeMemoryIsTaken) {
  // 64 MB of zeros deflate to 64 kB, within what deflate can do; the header inside promises 4 bytes.
  int code = 0;
  zip_t* archive = zip_open(path("bomb.npz").c_str(), ZIP_CREATE, &code);
  std::string bytes = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", "1234");
  bytes.resize(64 << 20);
  zip_source_t* source = zip_source_buffer(archive, bytes.data(), bytes.size(), 0);
  ASSERT_GE(zip_file_add(archive, "x.npy", source, 0), 0);
  ASSERT_EQ(zip_close(archive), 0);
  const auto read = read_npz(path("bomb.npz"));
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.error().message.find("promises 4 bytes of elements, found 67108"), std::string::npos)
      << read.error().message;
}

Image checkered(int channels, int bits) {
  Image image{5, 4, channels, bits, {}};
  for (int i = 0; i < 20 * channels; ++i) image.samples.push_back(static_cast<std::uint16_t>((i * 37) % 256));
  return image;
}

TEST_F(Files, PngComesBack) {
  for (const int channels : {1, 2, 3, 4}) {
    const Image image = checkered(channels, 8);
    ASSERT_TRUE(write_png(path("a.png"), image).ok());
    const auto back = read_png(path("a.png"));
    ASSERT_TRUE(back.ok()) << back.error().text();
    EXPECT_EQ(back->width, 5);
    EXPECT_EQ(back->height, 4);
    EXPECT_EQ(back->channels, channels);
    EXPECT_EQ(back->samples, image.samples);
  }
}

TEST_F(Files, BrokenPngIsRefused) {
  ASSERT_TRUE(write_png(path("a.png"), checkered(3, 8)).ok());
  const std::string sound = bytes_of("a.png");
  for (std::size_t length = 0; length + 12 < sound.size(); ++length) {
    EXPECT_FALSE(read_png(put("b.png", sound.substr(0, length))).ok()) << length;
  }
  for (std::size_t i = 0; i < sound.size(); ++i) {  // refused, or read as some image: never worse
    std::string flipped = sound;
    flipped[i] = static_cast<char>(flipped[i] ^ 0xff);
    static_cast<void>(read_png(put("b.png", flipped)));
  }
  EXPECT_NE(read_png(put("b.png", "GIF89a" + std::string(64, 'x')))
                .error()
                .message.find("is not a sound PNG image: Not a PNG file."),
            std::string::npos);
}

TEST_F(Files, ImagesBecomeTensorsAndBack) {
  Image image{2, 1, 3, 8, {255, 0, 0, 0, 255, 51}};
  ImageOptions options;
  auto tensor = tensor_from_image(image, {DType::f32, 4, 3}, options, "a.png");
  ASSERT_TRUE(tensor.ok()) << tensor.error().text();
  EXPECT_EQ(tensor->sizes(), (std::vector<std::int64_t>{1, 3, 1, 2}));
  EXPECT_FLOAT_EQ(tensor->as<float>()[0], 1);
  EXPECT_FLOAT_EQ(tensor->as<float>()[5], 0.2F);

  options.channels = Channels::bgr;
  options.low = -1;
  tensor = tensor_from_image(image, {DType::f32, 4, 3}, options, "a.png");
  EXPECT_FLOAT_EQ(tensor->as<float>()[1], -0.6F) << "blue first, in -1..1";
  const auto back = image_from_tensor(*tensor, options, "a.png");
  ASSERT_TRUE(back.ok()) << back.error().text();
  EXPECT_EQ(back->samples, image.samples);

  options = {};
  options.mean = {0.5, 0.25, 0};
  options.deviation = {0.5};
  tensor = tensor_from_image(image, {DType::f32, 3, 0}, options, "a.png");
  EXPECT_EQ(tensor->sizes().size(), 3U);
  EXPECT_FLOAT_EQ(tensor->as<float>()[0], 1);
  EXPECT_FLOAT_EQ(tensor->as<float>()[2], -0.5F);

  const auto grey = tensor_from_image(image, {DType::f32, 4, 1}, {}, "a.png");
  EXPECT_FLOAT_EQ(grey->as<float>()[0], 0.299F) << "an input of one channel takes the luma";
  const auto raw = tensor_from_image(image, {DType::u8, 4, 3}, {}, "a.png");
  EXPECT_EQ(raw->as<std::uint8_t>()[5], 51);
  const auto opaque = tensor_from_image(image, {DType::f32, 4, 4}, {}, "a.png");
  EXPECT_FLOAT_EQ(opaque->as<float>()[6], 1) << "what has no alpha is opaque";
}

TEST_F(Files, ImagesThatDoNotFitAreRefused) {
  const Image image = checkered(3, 8);
  ImageOptions options;
  EXPECT_EQ(tensor_from_image(image, {DType::f32, 4, 5}, options, "a.png").error().text(),
            "the network takes 5 channels, 'a.png' gives 3. Choose with --channels rgb, bgr, grey or rgba, or give the "
            "tensor as .npy.");
  EXPECT_EQ(tensor_from_image(image, {DType::i64, 4, 3}, options, "a.png").error().message,
            "the network takes i64, an image gives f32, f64 or u8.");
  EXPECT_EQ(tensor_from_image(image, {DType::f32, 5, 0}, options, "a.png").error().message,
            "the network takes a tensor of rank 5, an image of 3 channels has rank 4.");
  options.mean = {1, 2};
  EXPECT_EQ(tensor_from_image(image, {DType::f32, 4, 3}, options, "a.png").error().message,
            "--mean has 2 numbers for 3 channels.");
  EXPECT_EQ(image_from_tensor(numbered(DType::f32, {2, 3, 4, 4}), {}, "a.png").error().message,
            "cannot write a tensor f32[2, 3, 4, 4] to 'a.png': an image is [1, C, H, W], [C, H, W] or [H, W].");
  EXPECT_EQ(image_from_tensor(numbered(DType::f32, {7, 4, 4}), {}, "a.png").error().message,
            "cannot write a tensor f32[7, 4, 4] to 'a.png': an image has 1, 3 or 4 channels.");
  EXPECT_EQ(image_from_tensor(numbered(DType::i32, {4, 4}), {}, "a.png").error().message,
            "cannot write a tensor i32[4, 4] to 'a.png': an image is f32, f64 or u8.");
}

TEST_F(Files, ValuesBeyondTheRangeAreClamped) {
  api::Tensor tensor = api::Tensor::allocate(DType::f32, {1, 4}).value();
  const float values[] = {-3, 0.5F, 7, NAN};
  std::memcpy(tensor.data(), values, sizeof values);
  const auto image = image_from_tensor(tensor, {}, "a.png");
  ASSERT_TRUE(image.ok());
  EXPECT_EQ(image->samples, (std::vector<std::uint16_t>{0, 128, 255, 0}));
}

TEST_F(Files, WavComesBackWithin16Bits) {
  api::Tensor tensor = api::Tensor::allocate(DType::f32, {1, 2, 1000}).value();
  for (int i = 0; i < 2000; ++i) tensor.as<float>()[i] = std::sin(static_cast<float>(i) * 0.01F);
  ASSERT_TRUE(write_wav(path("a.wav"), tensor, 16000).ok());
  const auto back = read_wav(path("a.wav"), 3);
  ASSERT_TRUE(back.ok()) << back.error().text();
  EXPECT_EQ(back->sample_rate, 16000);
  ASSERT_EQ(back->tensor.sizes(), tensor.sizes());
  for (int i = 0; i < 2000; ++i) ASSERT_NEAR(back->tensor.as<float>()[i], tensor.as<float>()[i], 1.0 / 32768) << i;
  EXPECT_FALSE(read_wav(path("a.wav"), 1).ok()) << "two channels do not fit rank 1";
  EXPECT_FALSE(read_wav(put("b.wav", "RIFFxxxxWAVEnothing"), 3).ok());
  EXPECT_FALSE(write_wav(path("c.wav"), numbered(DType::f32, {2, 2, 5}), 16000).ok()) << "a batch is no sound";
}

TEST_F(Files, AWriteThatFailsLeavesTheOldFileAndNothingElse) {
  put("a.txt", "old");
  {
    auto file = NewFile::create(path("a.txt"));
    ASSERT_TRUE(file.ok());
    std::ofstream(file->path()) << "half";
    EXPECT_EQ(bytes_of("a.txt"), "old") << "not before it is published";
  }
  EXPECT_EQ(bytes_of("a.txt"), "old");
  std::filesystem::create_symlink("a.txt", path("link"));
  ASSERT_TRUE(write_whole_file(path("link"), {"ne", "w"}).ok());
  EXPECT_EQ(bytes_of("a.txt"), "new") << "the file behind the link is replaced, not the link";
  EXPECT_TRUE(std::filesystem::is_symlink(path("link")));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 2) << "no temporary file is left";
  EXPECT_EQ(write_whole_file("/dev/full", {"x"}).error().text(),
            "cannot write '/dev/full': No space left on device. Free space on the disk, or write elsewhere.");
  EXPECT_EQ(write_whole_file(path("no/a"), {"x"}).error().hint, "Choose a folder that exists and can be written.");
  EXPECT_NE(write_whole_file(folder_.string(), {"x"}).error().text().find("it is a folder"), std::string::npos);
  EXPECT_TRUE(write_whole_file("/dev/null", {"x"}).ok());
}

}  // namespace
}  // namespace polyphase::io
