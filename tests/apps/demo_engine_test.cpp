// The engine of the demo's network, as a file: every byte of it changed, every length of it cut, other versions, other
// CPUs.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "api/state.h"
#include "engine/file.h"
#include "engine/file_header.h"
#include "polyphase/polyphase.h"
#include "runtime/program.h"
#include "suite_size.h"

namespace polyphase {
namespace {

// To the next of an engine's bytes to try. A sanitizer, which makes each try ten times as long, sees all of the header
// and the tables behind it, and then one byte of seven.
std::size_t after(std::size_t i) { return i < 4096 || !test::sliced() ? i + 1 : i + 7; }

constexpr std::size_t checksummed_header_bytes = engine_header_bytes + 2 * engine_section_entry_bytes;

class DemoEngine : public testing::Test {
 protected:
  DemoEngine() : path_(testing::TempDir() + "demo_" + std::to_string(::getpid()) + ".ppe") {}
  ~DemoEngine() override { std::filesystem::remove(path_); }

  void compile_for(const std::string& target) {
    api::CompileOptions options;
    options.target = target;
    const auto engine = api::compile("models/fsrcnn_x3/fsrcnn_x3.onnx", options);
    ASSERT_TRUE(engine.ok()) << engine.error().text();
    const auto saved = engine->save(path_);
    ASSERT_TRUE(saved.ok()) << saved.error().text();
    std::ifstream in(path_, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    ASSERT_GT(text.size(), 4096U);
    bytes_ = Buffer::allocate(text.size()).value();
    std::memcpy(bytes_->data(), text.data(), text.size());
  }

  std::byte& at(std::size_t i) { return bytes_->data()[i]; }
  // What the reader says about the first `length` bytes; empty: it takes them.
  std::string refusal(std::size_t length) {
    const auto engine = read_engine_bytes(Buffer::borrow(bytes_, bytes_->data(), length), "demo.ppe", registry_);
    return engine.ok() ? "" : engine.error().text();
  }
  std::string refusal() { return refusal(bytes_->size_bytes()); }

  // Makes the header's checksum right again, as a forger would, and writes the file out.
  void seal() {
    std::fill_n(&at(24), 8, std::byte{0});
    const std::uint64_t checksum = checksum_of({bytes_->data(), checksummed_header_bytes});
    std::memcpy(&at(24), &checksum, 8);
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes_->data()), static_cast<std::streamsize>(bytes_->size_bytes()));
  }

  Registry registry_ = Registry::built_in();
  std::string path_;
  std::shared_ptr<Buffer> bytes_;
};

TEST_F(DemoEngine, EveryChangedByteIsRefused) {
  ASSERT_NO_FATAL_FAILURE(compile_for("native"));
  ASSERT_EQ(refusal(), "");
  for (std::size_t i = 0; i < bytes_->size_bytes(); i = after(i)) {
    at(i) ^= std::byte{0xff};
    const std::string words = refusal();
    at(i) ^= std::byte{0xff};
    ASSERT_EQ(words.rfind("'demo.ppe' ", 0), 0U) << "byte " << i << ": " << words;
  }
  EXPECT_EQ(refusal(), "");
}

TEST_F(DemoEngine, EveryCutIsRefused) {
  ASSERT_NO_FATAL_FAILURE(compile_for("native"));
  const std::size_t size = bytes_->size_bytes();
  for (std::size_t length = 0; length < size; length = after(length)) {
    const std::string words = refusal(length);
    ASSERT_EQ(words.rfind("'demo.ppe' is ", 0), 0U) << length << " bytes: " << words;
    if (length < 8) continue;  // too short to tell that it is an engine
    ASSERT_NE(words.find("truncated"), std::string::npos) << length << " bytes: " << words;
  }
}

TEST_F(DemoEngine, AnotherMajorIsRefusedAndANewerMinorIsRun) {
  ASSERT_NO_FATAL_FAILURE(compile_for("portable"));
  const std::uint16_t next = engine_format_major + 1;
  std::memcpy(&at(8), &next, 2);
  seal();
  const auto refused = api::Engine::load(path_);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::incompatible);
  EXPECT_NE(refused.error().text().find("Update Polyphase, or compile the model again"), std::string::npos)
      << refused.error().text();
  std::memcpy(&at(8), &engine_format_major, 2);
  const std::uint16_t minor = engine_format_minor + 1;
  std::memcpy(&at(10), &minor, 2);
  seal();
  const auto engine = api::Engine::load(path_);
  ASSERT_TRUE(engine.ok()) << engine.error().text();
  EXPECT_TRUE(api::Session::create(*engine).ok());
}

TEST_F(DemoEngine, ForMoreThanTheCpuHasIsRefused) {
  const auto workshop = api::built_in_workshop();
  ASSERT_NO_FATAL_FAILURE(compile_for("avx512"));
  auto engine = read_engine(path_, workshop->registry());
  ASSERT_TRUE(engine.ok()) << engine.error().text();
  const auto shared = std::make_shared<const Engine>(std::move(engine).value());
  for (const Cluster lesser : {Cluster::scalar, Cluster::avx2}) {
    const auto program = make_program(shared, workshop->target(lesser, false));
    ASSERT_FALSE(program.ok());
    EXPECT_EQ(program.error().code, ErrorCode::incompatible);
    EXPECT_EQ(program.error().text(), "the engine was compiled for avx512; this CPU has " +
                                          std::string(name_of(lesser)) +
                                          ". Compile the model again on this machine, or with --target portable.");
  }
  ASSERT_NO_FATAL_FAILURE(compile_for("portable"));
  auto portable = read_engine(path_, workshop->registry());
  ASSERT_TRUE(portable.ok()) << portable.error().text();
  const auto program = make_program(std::make_shared<const Engine>(std::move(portable).value()),
                                    workshop->target(Cluster::scalar, false));
  EXPECT_TRUE(program.ok()) << program.error().text();
}

// The same numbers from an engine for any CPU as from one for this CPU.
TEST_F(DemoEngine, PortableRunsHere) {
  std::vector<float> pixels(std::size_t{24} * 31);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(i % 17) / 16;
  std::vector<api::Tensor> found;
  for (const char* target : {"portable", "native"}) {
    ASSERT_NO_FATAL_FAILURE(compile_for(target));
    const auto engine = api::Engine::load(path_);
    ASSERT_TRUE(engine.ok()) << engine.error().text();
    const auto session = api::Session::create(*engine);
    ASSERT_TRUE(session.ok()) << session.error().text();
    const auto outputs = session->run({api::view(pixels.data(), {1, 1, 24, 31})});
    ASSERT_TRUE(outputs.ok()) << outputs.error().text();
    found.push_back(outputs->front());
  }
  ASSERT_EQ(found[0].sizes(), (std::vector<std::int64_t>{1, 1, 72, 93}));
  ASSERT_EQ(found[1].sizes(), found[0].sizes());
  EXPECT_EQ(std::memcmp(found[0].data(), found[1].data(), found[0].size_bytes()), 0);
}

}  // namespace
}  // namespace polyphase
