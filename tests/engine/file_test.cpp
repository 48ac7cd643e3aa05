// The engine file: the same engine comes back, and every changed byte, every cut and every other file is refused with a
// reason.
#include "engine/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "engine/engine_writer.h"
#include "engine/file_header.h"
#include "engine/sample.h"
#include "temporary_folder.h"

namespace polyphase {
namespace {

class EngineFile : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return temporary_.file(name); }

  std::string write_sample(const std::string& name = "sample.ppe") {
    const auto done = write_engine(sample_engine(registry_), path(name));
    EXPECT_TRUE(done.ok()) << done.error().text();
    return path(name);
  }

  static std::vector<std::byte> bytes_of(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    std::vector<std::byte> bytes(text.size());
    std::memcpy(bytes.data(), text.data(), text.size());
    return bytes;
  }

  Result<Engine> read(std::span<const std::byte> bytes) {
    auto buffer = Buffer::allocate(bytes.size()).value();
    std::copy(bytes.begin(), bytes.end(), buffer->data());
    return read_engine_bytes(buffer, "m.ppe", registry_);
  }

  std::string refusal_of_text(const std::string& contents) {
    std::ofstream(path("other"), std::ios::binary) << contents;
    const auto engine = read_engine(path("other"), registry_);
    if (engine.ok()) return "accepted";
    std::string text = engine.error().text();
    for (std::size_t at; (at = text.find(folder_.string() + "/")) != std::string::npos;)
      text.erase(at, folder_.string().size() + 1);
    return text;
  }

  Registry registry_ = Registry::built_in();
  const TemporaryFolder temporary_;
  const std::filesystem::path& folder_ = temporary_.path();
};

TEST_F(EngineFile, ComesBackAsItWas) {
  const Engine before = sample_engine(registry_);
  const auto read_back = read_engine(write_sample(), registry_);
  ASSERT_TRUE(read_back.ok()) << read_back.error().text();
  const Engine& after = *read_back;
  EXPECT_EQ(after.model_name, before.model_name);
  EXPECT_EQ(after.producer, before.producer);
  EXPECT_EQ(after.cluster, before.cluster);
  EXPECT_EQ(after.symbols, before.symbols);
  EXPECT_EQ(after.remarks, before.remarks);
  EXPECT_EQ(after.checks, before.checks);
  ASSERT_EQ(after.values.size(), before.values.size());
  for (std::size_t i = 0; i < before.values.size(); ++i) {
    EXPECT_EQ(after.values[i].name, before.values[i].name);
    EXPECT_EQ(after.values[i].type, before.values[i].type);
    EXPECT_EQ(after.values[i].layout, before.values[i].layout);
    EXPECT_EQ(after.values[i].storage, before.values[i].storage);
    EXPECT_EQ(after.values[i].alias.offset, before.values[i].alias.offset);
    EXPECT_EQ(after.values[i].alias.strides, before.values[i].alias.strides);
  }
  ASSERT_EQ(after.constants.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(after.constants[i].bytes->size_bytes(), before.constants[i].bytes->size_bytes());
    EXPECT_EQ(std::memcmp(after.constants[i].bytes->data(), before.constants[i].bytes->data(),
                          before.constants[i].bytes->size_bytes()),
              0);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(after.constants[i].bytes->data()) % 64, 0U);
    EXPECT_EQ(after.constants[i].format, before.constants[i].format);
  }
  ASSERT_EQ(after.blocks.size(), 1U);
  ASSERT_EQ(after.blocks[0].steps.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const Step& a = before.blocks[0].steps[i];
    const Step& b = after.blocks[0].steps[i];
    EXPECT_EQ(b.name, a.name);
    EXPECT_EQ(b.inputs, a.inputs);
    EXPECT_EQ(b.outputs, a.outputs);
    EXPECT_EQ(b.rows, a.rows);
    EXPECT_EQ(b.packed, a.packed);
    EXPECT_EQ(b.parts[0].attributes, a.parts[0].attributes);
    EXPECT_EQ(b.parts[0].operands, a.parts[0].operands);
  }
}

TEST_F(EngineFile, IsReproducible) {
  const auto first = bytes_of(write_sample("a.ppe"));
  EXPECT_EQ(bytes_of(write_sample("b.ppe")), first);
  const auto again = read_engine(path("a.ppe"), registry_);
  ASSERT_TRUE(again.ok());
  ASSERT_TRUE(write_engine(*again, path("c.ppe")).ok());
  EXPECT_EQ(bytes_of(path("c.ppe")), first);
}

TEST_F(EngineFile, ConstantsSectionIsPageAligned) {
  const auto bytes = bytes_of(write_sample());
  const auto sections = check_header(bytes, "m.ppe");
  ASSERT_TRUE(sections.ok());
  ASSERT_EQ(sections->size(), 2U);
  EXPECT_EQ((*sections)[0].kind, static_cast<std::uint32_t>(SectionKind::constants));
  EXPECT_EQ((*sections)[0].offset % 4096, 0U);
}

TEST_F(EngineFile, GrowsWhileTheEngineIsMade) {
  const auto right = bytes_of(write_sample());
  Engine engine = sample_engine(registry_);
  {
    EngineWriter writer(path("grown.ppe"));
    ASSERT_TRUE(writer.open().ok());
    for (EngineConstant& constant : engine.constants) {
      const std::size_t size = constant.bytes->size_bytes();
      ASSERT_TRUE(writer.add({constant.bytes->data(), size}).ok());
    }
    std::vector<std::byte> back(engine.constants[1].bytes->size_bytes());
    ASSERT_TRUE(writer.read(1, 0, back).ok());
    EXPECT_EQ(std::memcmp(back.data(), engine.constants[1].bytes->data(), back.size()), 0);
    EXPECT_FALSE(writer.read(1, 1 << 20, back).ok()) << "beyond the end";
    for (EngineConstant& constant : engine.constants) constant.bytes = nullptr;
    ASSERT_TRUE(writer.finish(engine).ok());
    ASSERT_TRUE(writer.lend(engine).ok());
    EXPECT_FALSE(std::filesystem::exists(path("grown.ppe")));
    ASSERT_TRUE(writer.publish().ok());
  }
  EXPECT_EQ(bytes_of(path("grown.ppe")), right);
  std::filesystem::remove(path("grown.ppe"));
  const Engine same = sample_engine(registry_);
  for (std::size_t i = 0; i < engine.constants.size(); ++i) {
    ASSERT_EQ(engine.constants[i].bytes->size_bytes(), same.constants[i].bytes->size_bytes());
    EXPECT_EQ(std::memcmp(engine.constants[i].bytes->data(), same.constants[i].bytes->data(),
                          same.constants[i].bytes->size_bytes()),
              0);
  }
  EXPECT_EQ(engine_bytes(engine), right);
}

TEST_F(EngineFile, AFileThatIsNotFinishedLeavesNothing) {
  {
    EngineWriter writer(path("half.ppe"));
    ASSERT_TRUE(writer.open().ok());
    ASSERT_TRUE(writer.add(std::vector<std::byte>(100)).ok());
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  EngineWriter nowhere(path("no/such/folder.ppe"));
  EXPECT_NE(nowhere.open().error().text().find("No such file or directory"), std::string::npos);
}

// Files of format 1.0 and 1.1 have their program first.
TEST_F(EngineFile, SectionsStandInAnyOrder) {
  const std::vector<std::byte> bytes = bytes_of(write_sample());
  const auto sections = check_header(bytes, "m.ppe").value();
  const auto contents = [&](const Section& section) {
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(section.offset);
    return std::vector<std::byte>(begin, begin + static_cast<std::ptrdiff_t>(section.size_bytes));
  };
  std::vector<Section> turned = {sections[1], sections[0]};
  turned[0].offset = 128;
  turned[1].offset = align_up(128 + turned[0].size_bytes, constants_alignment_bytes);
  std::vector<std::byte> old = make_header(turned, turned[1].offset + turned[1].size_bytes);
  for (std::size_t i = 0; i < 2; ++i) {
    old.resize(turned[i].offset);
    const auto part = contents(sections[1 - i]);
    old.insert(old.end(), part.begin(), part.end());
  }
  const auto engine = read(old);
  ASSERT_TRUE(engine.ok()) << engine.error().text();
  EXPECT_EQ(engine_bytes(*engine), bytes);
}

TEST_F(EngineFile, EveryFlippedByteIsRefused) {
  std::vector<std::byte> bytes = bytes_of(write_sample());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (const auto mask : {std::byte{0xff}, std::byte{0x01}, std::byte{0x80}}) {
      bytes[i] ^= mask;
      ASSERT_FALSE(read(bytes).ok()) << "byte " << i;
      bytes[i] ^= mask;
    }
  }
  EXPECT_TRUE(read(bytes).ok());
}

TEST_F(EngineFile, EveryCutIsRefused) {
  const std::vector<std::byte> bytes = bytes_of(write_sample());
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    const auto engine = read(std::span(bytes).first(length));
    ASSERT_FALSE(engine.ok()) << length << " bytes";
    if (length >= 8) {
      ASSERT_NE(engine.error().message.find("truncated"), std::string::npos) << engine.error().text();
    }
  }
}

TEST_F(EngineFile, SaysWhatIsWrongWithADamagedFile) {
  std::vector<std::byte> bytes = bytes_of(write_sample());
  const auto message = [&] { return read(bytes).error().text(); };
  const auto sections = check_header(bytes, "m.ppe").value();
  const std::string total = std::to_string(bytes.size());

  bytes[sections[0].offset + 40] ^= std::byte{1};
  EXPECT_EQ(message().substr(0, 51), "'m.ppe' is damaged: section constants has checksum ");
  bytes[sections[0].offset + 40] ^= std::byte{1};
  bytes.back() ^= std::byte{1};
  EXPECT_NE(message().find("section program has checksum"), std::string::npos) << message();
  bytes.back() ^= std::byte{1};
  bytes[17] ^= std::byte{1};
  EXPECT_NE(message().find("its header has checksum"), std::string::npos) << message();
  bytes[17] ^= std::byte{1};

  bytes.push_back(std::byte{0});
  EXPECT_EQ(message(), "'m.ppe' is damaged: it is longer than it says: expected " + total + " bytes, found " +
                           std::to_string(bytes.size()) + ". Copy the file again, or compile the model again.");
  bytes.resize(4200);
  EXPECT_EQ(message(), "'m.ppe' is truncated: expected " + total +
                           " bytes, found 4200. Copy the whole file again, or compile the model again.");
}

TEST_F(EngineFile, AnotherMajorVersionIsRefusedAndAMinorIsRead) {
  const std::vector<std::byte> bytes = bytes_of(write_sample());
  const auto with_version = [&](std::uint16_t major, std::uint16_t minor) {
    std::vector<std::byte> changed = bytes;
    std::memcpy(changed.data() + 8, &major, 2);
    std::memcpy(changed.data() + 10, &minor, 2);
    std::fill_n(changed.begin() + 24, 8, std::byte{0});
    const std::uint64_t checksum = checksum_of(std::span(changed).first(96));
    std::memcpy(changed.data() + 24, &checksum, 8);
    return read(changed);
  };
  EXPECT_EQ(with_version(2, 7).error().text(),
            "'m.ppe' has engine format 2.7, made by a newer Polyphase; this one reads format 1. "
            "Update Polyphase, or compile the model again with this version.");
  EXPECT_EQ(with_version(0, 1).error().text(),
            "'m.ppe' has engine format 0.1, made by an older Polyphase; this one reads format 1. "
            "Compile the model again with this version.");
  EXPECT_TRUE(with_version(1, 9).ok());
}

TEST_F(EngineFile, OtherFilesAreNamed) {
  const std::string give = " Give an engine made by polyphase compile.";
  EXPECT_EQ(refusal_of_text(""),
            "'other' is not a Polyphase engine: it is empty. The write may have failed: compile the model again.");
  EXPECT_EQ(
      refusal_of_text(std::string("\x08\x08\x12\x07pytorch", 11)),
      "'other' is not a Polyphase engine: it is an ONNX model. Compile it first: polyphase compile MODEL -o model.ppe");
  EXPECT_EQ(
      refusal_of_text("PK\x03\x04xxxx"),
      "'other' is not a Polyphase engine: it is a zip archive, such as a PyTorch .pt2 program or an .npz of arrays." +
          give);
  EXPECT_EQ(refusal_of_text("\x89PNG\r\n\x1a\nxxxx"),
            "'other' is not a Polyphase engine: it is a PNG image. Give images with --input NAME=FILE.png.");
  EXPECT_EQ(refusal_of_text("graph main\n"), "'other' is not a Polyphase engine: it is text." + give);
  EXPECT_EQ(refusal_of_text(std::string("\x00\x01\x02\x03", 4)),
            "'other' is not a Polyphase engine: it is of an unknown kind." + give);
  EXPECT_EQ(refusal_of_text("\x89PPE\n\x1a\nxxxx"),
            "'other' is not a Polyphase engine: it is an engine whose line ends a text-mode transfer has changed, or "
            "whose first "
            "bytes are damaged. Copy it again in binary mode, or compile the model again.");
  EXPECT_EQ(refusal_of_text("\x89PPE\r\n\x1a\n").substr(0, 64),
            "'other' is truncated: expected 32 bytes, found 8. Copy the whole");
}

TEST_F(EngineFile, OnlyRegularFilesAreRead) {
  EXPECT_EQ(read_engine(path("absent.ppe"), registry_).error().text(),
            "cannot open '" + path("absent.ppe") +
                "': No such file or directory. Check that the path is right and that you may read it.");
  EXPECT_NE(read_engine(folder_.string(), registry_).error().text().find("is a folder, not a file"), std::string::npos);
  EXPECT_NE(read_engine("/dev/zero", registry_).error().text().find("is a device or a pipe, not a file"),
            std::string::npos);
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_NE(read_engine(path("pipe"), registry_).error().text().find("is a device or a pipe"), std::string::npos);
}

TEST_F(EngineFile, WritingLeavesTheOldFileOrTheNewOne) {
  const std::string file = write_sample();
  const auto old_bytes = bytes_of(file);
  EXPECT_NE(write_engine(sample_engine(registry_), path("no/such/folder.ppe"))
                .error()
                .text()
                .find("No such file or directory"),
            std::string::npos);
  EXPECT_EQ(write_engine(sample_engine(registry_), "/dev/null").error().text(),
            "cannot write '/dev/null': it is a device or pipe. Give the name of a file, such as model.ppe.");
  EXPECT_NE(write_engine(sample_engine(registry_), folder_.string()).error().text().find("it is a folder"),
            std::string::npos);
  std::filesystem::create_symlink(file, path("link.ppe"));
  const auto mapped = read_engine(file, registry_);
  ASSERT_TRUE(write_engine(sample_engine(registry_), path("link.ppe")).ok());
  EXPECT_TRUE(std::filesystem::is_symlink(path("link.ppe"))) << "the file behind the link is replaced, not the link";
  EXPECT_EQ(mapped->constants[0].bytes->data()[1], std::byte{32}) << "who has mapped the old file keeps it";
  EXPECT_EQ(bytes_of(file), old_bytes);
  std::size_t left = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_)) ++left;
  EXPECT_EQ(left, 2U) << "no temporary file is left";
}

}  // namespace
}  // namespace polyphase
