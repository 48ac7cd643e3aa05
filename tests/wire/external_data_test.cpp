// External data: only plain files inside the model's folder, only bytes that are there.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "onnx/onnx.pb.h"
#include "temporary_folder.h"
#include "wire/onnx_tensor.h"

namespace polyphase::wire {
namespace {

namespace fs = std::filesystem;
using Entries = std::vector<std::pair<std::string, std::string>>;

class ExternalDataTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = root_ / "model";
    fs::create_directories(folder_ / "sub");
    write(folder_ / "w.bin", 16);
    write(folder_ / "sub" / "v.bin", 8);
    write(root_ / "outside.bin", 8);
  }

  static void write(const fs::path& path, int count) {
    std::ofstream file(path, std::ios::binary);
    for (int i = 0; i < count; ++i) file.put(static_cast<char>(i));
  }

  static onnx::TensorProto proto(const Entries& entries, std::int64_t count = 8) {
    onnx::TensorProto out;
    out.set_data_type(onnx::TensorProto::UINT8);
    out.add_dims(count);
    out.set_data_location(onnx::TensorProto::EXTERNAL);
    for (const auto& [key, value] : entries) {
      auto* entry = out.add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    }
    return out;
  }

  std::string refusal(const Entries& entries, std::int64_t count = 8) {
    ExternalData external(folder_);
    onnx::TensorProto tensor = proto(entries, count);
    auto taken = take_tensor(tensor, external);
    return taken.ok() ? "read" : taken.error().message;
  }

  const TemporaryFolder temporary_;
  const fs::path& root_ = temporary_.path();
  fs::path folder_;
};

TEST_F(ExternalDataTest, ReadsWhatIsThere) {
  ExternalData external(folder_);
  onnx::TensorProto tensor = proto({{"location", "w.bin"}, {"offset", "4"}, {"length", "8"}, {"checksum", "x"}});
  const auto taken = take_tensor(tensor, external);
  ASSERT_TRUE(taken.ok()) << taken.error().text();
  EXPECT_EQ(static_cast<int>(taken->view().data[0]), 4);
  EXPECT_EQ(refusal({{"location", "sub/v.bin"}}), "read");
  EXPECT_EQ(refusal({{"location", "./sub//v.bin"}}), "read");
}

TEST_F(ExternalDataTest, PathsThatLeaveTheFolderAreRefused) {
  const auto outside = [](const std::string& path, const std::string& why) {
    return "the external data path '" + path + "' " + why + ".";
  };
  EXPECT_EQ(refusal({{"location", "../outside.bin"}}), outside("../outside.bin", "leaves the model's folder"));
  EXPECT_EQ(refusal({{"location", "sub/../../outside.bin"}}),
            outside("sub/../../outside.bin", "leaves the model's folder"));
  EXPECT_EQ(refusal({{"location", "/etc/passwd"}}), outside("/etc/passwd", "is absolute"));
  EXPECT_EQ(refusal({{"location", "C:w.bin"}}), outside("C:w.bin", "is absolute"));
  EXPECT_EQ(refusal({{"location", "\\\\host\\w.bin"}}), outside("\\\\host\\w.bin", "contains a backslash"));
  EXPECT_EQ(refusal({{"location", ""}}), outside("", "is empty"));
  EXPECT_EQ(refusal({{"location", std::string("w.bin\0x", 7)}}), outside("w.bin\\x00x", "contains a zero byte"));
  EXPECT_EQ(refusal({{"location", "sub/"}}), outside("sub/", "names a folder"));
}

TEST_F(ExternalDataTest, LinksAndSpecialFilesAreRefused) {
  fs::create_symlink(root_ / "outside.bin", folder_ / "link.bin");
  EXPECT_EQ(refusal({{"location", "link.bin"}}), "the external data path 'link.bin' is a symbolic link.");
  fs::create_directory_symlink(root_, folder_ / "up");
  EXPECT_EQ(refusal({{"location", "up/outside.bin"}}),
            "the external data path 'up/outside.bin' passes through 'up', which is a symbolic link or not a folder.");
  fs::create_hard_link(root_ / "outside.bin", folder_ / "hard.bin");
  EXPECT_EQ(refusal({{"location", "hard.bin"}}),
            "the external data path 'hard.bin' is a hard link: the same file has 2 names, and another may lie outside "
            "the model's folder.");
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(refusal({{"location", "pipe"}}), "'pipe' is a pipe, not a file with data.");
  EXPECT_EQ(refusal({{"location", "sub"}}), "'sub' is a folder, not a file with data.");
  EXPECT_EQ(refusal({{"location", "none.bin"}}),
            "the file 'none.bin' with the weights cannot be opened: No such file or directory.");
}

TEST_F(ExternalDataTest, NumbersAreChecked) {
  EXPECT_EQ(refusal({{"location", "w.bin"}, {"offset", "9"}}),
            "external data: 8 bytes at offset 9 lie beyond the end of 'w.bin', which has 16 bytes.");
  EXPECT_EQ(refusal({{"location", "w.bin"}, {"offset", "9223372036854775807"}}),
            "external data: 8 bytes at offset 9223372036854775807 lie beyond the end of 'w.bin', which has 16 bytes.");
  for (const char* bad : {"-1", "1e3", " 1", "9223372036854775808", "", "0x10"}) {
    EXPECT_EQ(refusal({{"location", "w.bin"}, {"offset", bad}}),
              std::string("external data: offset is '") + bad + "'; it must be a whole number, 0 or more.");
  }
  EXPECT_EQ(refusal({{"location", "w.bin"}, {"length", "7"}}),
            "external data: length is 7 bytes, but the tensor's type and shape need 8.");
  EXPECT_EQ(refusal({{"location", "w.bin"}}, INT64_C(1) << 50),
            "external data: 1125899906842624 bytes at offset 0 lie beyond the end of 'w.bin', which has 16 bytes.");
}

TEST_F(ExternalDataTest, KeysAreChecked) {
  EXPECT_EQ(refusal({{"location", "w.bin"}, {"__class__", "x"}}),
            "external data: the key '__class__' is unknown; ONNX has location, offset, length and checksum.");
  EXPECT_EQ(refusal({{"location", "w.bin"}, {"location", "sub/v.bin"}}),
            "external data: the key 'location' is there twice.");
  EXPECT_EQ(refusal({{"offset", "0"}}), "external data: the key 'location' (the file with the weights) is missing.");
}

TEST_F(ExternalDataTest, OneFileIsNotReadAgainAndAgain) {
  ExternalData external(folder_);
  int refused = 0;
  for (int offset = 0; offset < 9; ++offset) {
    onnx::TensorProto tensor = proto({{"location", "w.bin"}, {"offset", std::to_string(offset)}});
    refused += take_tensor(tensor, external).ok() ? 0 : 1;
  }
  EXPECT_EQ(refused, 5);  // 32 bytes, twice the file, are 4 tensors
}

TEST(ExternalDataWithoutFolder, IsRefused) {
  ExternalData external(std::nullopt);
  onnx::TensorProto tensor;
  tensor.set_data_type(onnx::TensorProto::UINT8);
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  auto* entry = tensor.add_external_data();
  entry->set_key("location");
  entry->set_value("w.bin");
  EXPECT_EQ(take_tensor(tensor, external).error().text(),
            "the weights lie in the file 'w.bin' beside the model, but the model was given as bytes without a folder. "
            "Give the path of the model, or save it with its weights inside.");
}

}  // namespace
}  // namespace polyphase::wire
