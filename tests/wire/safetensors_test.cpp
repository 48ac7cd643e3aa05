// safetensors: what is read, and what hostile files are told.
#include "wire/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>

namespace polyphase::wire {
namespace {

std::string file_of(const std::string& header, std::size_t data_bytes, std::uint64_t promised = 0) {
  std::string out;
  const std::uint64_t length = promised != 0 ? promised : header.size();
  for (int i = 0; i < 8; ++i) out += static_cast<char>(length >> (8 * i) & 0xFFU);
  out += header;
  for (std::size_t i = 0; i < data_bytes; ++i) out += static_cast<char>(i);
  return out;
}

Result<std::vector<SafeTensor>> read(const std::string& file) {
  return read_safetensors({reinterpret_cast<const std::byte*>(file.data()), file.size()});
}

std::string weights_refusal(const std::string& file) {
  const auto found = read(file);
  return found.ok() ? "it was read" : found.error().message;
}

const std::string two =
    R"({"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[],"data_offsets":[8,10]},)"
    R"("a.weight":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},"none":{"dtype":"I64","shape":[3,0],"data_offsets":[10,10]}}   )";

TEST(SafeTensors, AreReadInTheOrderOfTheirElements) {
  const std::string file = file_of(two, 10);
  const auto found = read(file);
  ASSERT_TRUE(found.ok()) << found.error().text();
  ASSERT_EQ(found->size(), 3U);
  EXPECT_EQ((*found)[0].name, "a.weight");
  EXPECT_EQ((*found)[0].dtype, DType::f32);
  EXPECT_EQ((*found)[0].sizes, (std::vector<std::int64_t>{2, 1}));
  EXPECT_EQ(std::to_integer<int>((*found)[0].elements[7]), 7);
  EXPECT_EQ((*found)[1].name, "b");
  EXPECT_EQ((*found)[1].elements.size(), 2U);
  EXPECT_EQ((*found)[2].sizes, (std::vector<std::int64_t>{3, 0}));
  EXPECT_TRUE(read(file_of("{}", 0)).ok());
}

TEST(SafeTensors, TypesThatWeLackAreNoFault) {
  const std::string file = file_of(R"({"x":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})", 2);
  const auto found = read(file);
  ASSERT_TRUE(found.ok()) << found.error().text();
  EXPECT_FALSE(found->front().dtype.has_value());
  EXPECT_EQ(found->front().dtype_name, "F4");
}

TEST(SafeTensors, HostileFilesAreRefused) {
  const auto entry = [](const std::string& text) { return "{\"x\":{" + text + "}}"; };
  EXPECT_EQ(weights_refusal(""),
            "the file of 0 bytes is no safetensors file: its first 8 bytes promise a header of 0.");
  EXPECT_EQ(weights_refusal(file_of("{}", 0, 1000)),
            "the file of 10 bytes is no safetensors file: its first 8 bytes promise a header of 1000.");
  EXPECT_EQ(weights_refusal(file_of("{}", 0, UINT64_MAX)),
            "the file of 10 bytes is no safetensors file: its first 8 bytes promise a header of 18446744073709551615.");
  EXPECT_EQ(weights_refusal(file_of("[]", 0)), "the header of the safetensors file is no JSON object.");
  EXPECT_EQ(weights_refusal(file_of("{\"x\":", 0)), "the header of the safetensors file is no JSON object.");
  EXPECT_EQ(weights_refusal(file_of("{\"x\":1}", 0)), "tensor 'x' of the file has no dtype.");
  EXPECT_EQ(weights_refusal(file_of(entry(R"("dtype":3)"), 0)), "tensor 'x' of the file has no dtype.");
  const std::string no_shape = "tensor 'x' of the file has no shape, or one that is no list of sizes.";
  EXPECT_EQ(weights_refusal(file_of(entry(R"("dtype":"F32")"), 0)), no_shape);
  EXPECT_EQ(weights_refusal(file_of(entry(R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])"), 4)), no_shape);
  EXPECT_EQ(weights_refusal(file_of(entry(R"("dtype":"F32","shape":[1e30],"data_offsets":[0,4])"), 4)), no_shape);
  const std::string outside = "tensor 'x' has elements outside of the file, which has 4 bytes of them.";
  EXPECT_EQ(weights_refusal(file_of(entry(R"("dtype":"F32","shape":[1])"), 4)), outside);
  EXPECT_EQ(weights_refusal(file_of(entry(R"("dtype":"F32","shape":[1],"data_offsets":[0,8])"), 4)), outside);
  EXPECT_EQ(weights_refusal(file_of(entry(R"("dtype":"F32","shape":[1],"data_offsets":[4,0])"), 4)), outside);
  EXPECT_EQ(weights_refusal(file_of(entry(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])"), 4)),
            "tensor 'x' has 4 bytes; its dtype F32 and its shape need 8.");
  EXPECT_EQ(weights_refusal(file_of(entry(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4])"), 4)),
            "tensor 'x' has a shape beyond 64-bit arithmetic.");
  EXPECT_EQ(weights_refusal(file_of(entry(R"("dtype":"F32","shape":[1],"data_offsets":[0,4])"), 6)),
            "the file has 2 bytes behind the last of its tensors.");
  EXPECT_EQ(weights_refusal(file_of(entry(R"("dtype":"U8","shape":[1],"data_offsets":[1,2])"), 2)),
            "the elements of tensor 'x' begin behind a gap.");
  const std::string twice =
      R"({"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"y":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})";
  EXPECT_EQ(weights_refusal(file_of(twice, 3)), "the elements of tensor 'y' begin inside of another tensor's.");
  const std::string same =
      R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
  EXPECT_EQ(weights_refusal(file_of(same, 1)), "the header of the safetensors file has the name 'x' twice.");
}

TEST(SafeTensors, ChangedBytesAreReadOrRefused) {
  std::mt19937_64 random(5);
  const std::string file = file_of(two, 10);
  for (int trial = 0; trial < 4000; ++trial) {
    std::string changed = file.substr(0, trial % 3 == 0 ? random() % (file.size() + 1) : file.size());
    for (int change = 0; change < 3 && !changed.empty(); ++change)
      changed[random() % changed.size()] = static_cast<char>(random());
    const auto found = read(changed);
    if (!found.ok()) {
      EXPECT_FALSE(found.error().message.empty());
      continue;
    }
    for (const SafeTensor& tensor : *found) {
      const auto* first = reinterpret_cast<const char*>(tensor.elements.data());
      EXPECT_TRUE(first >= changed.data() && first + tensor.elements.size() <= changed.data() + changed.size());
    }
  }
}

}  // namespace
}  // namespace polyphase::wire
