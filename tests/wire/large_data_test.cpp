// What is cut out of a model and put back is the model; what is irregular or damaged is left to protobuf.
#include "wire/large_data.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>

#include "onnx/onnx.pb.h"
#include "wire/onnx_model.h"
#include "wire/onnx_tensor.h"

namespace polyphase::wire {
namespace {

onnx::ModelProto model(std::initializer_list<std::size_t> floats) {
  onnx::ModelProto out;
  out.set_ir_version(9);
  out.set_producer_name("test");
  onnx::GraphProto& graph = *out.mutable_graph();
  graph.set_name("g");
  graph.add_node()->set_op_type("Relu");
  unsigned char next = 1;
  for (const std::size_t count : floats) {
    onnx::TensorProto& tensor = *graph.add_initializer();
    tensor.set_name("w" + std::to_string(count));
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    tensor.add_dims(static_cast<std::int64_t>(count));
    std::string raw(4 * count, '\0');
    for (char& byte : raw) byte = static_cast<char>(next++);
    tensor.set_raw_data(raw);
    tensor.set_doc_string("behind the data");
  }
  graph.add_output()->set_name("y");
  out.set_domain("behind the graph");
  return out;
}

ModelBytes in_memory(const std::string& bytes) {
  return {static_cast<std::int64_t>(bytes.size()), [&](std::int64_t offset, std::span<std::byte> out) -> Result<void> {
            EXPECT_LE(static_cast<std::size_t>(offset) + out.size(), bytes.size());
            std::memcpy(out.data(), bytes.data() + offset, out.size());
            return {};
          }};
}

std::span<const std::byte> span_of(const std::string& bytes) { return std::as_bytes(std::span(bytes)); }

// The skeleton with its data put back; empty: protobuf does not read it.
std::string whole(const Skeleton& skeleton) {
  onnx::ModelProto out;
  if (!out.ParseFromString(skeleton.bytes)) return {};
  for (const auto& [place, data] : skeleton.initializers) {
    if (place >= out.graph().initializer_size()) return "no such initialiser";
    onnx::TensorProto& tensor = *out.mutable_graph()->mutable_initializer(place);
    if (tensor.has_raw_data()) return "the data are still there";
    tensor.set_raw_data(data->data(), data->size_bytes());
  }
  return out.SerializeAsString();
}

TEST(LargeData, AreCutOutAndTheRestStays) {
  const std::string bytes = model({40, 3, 100}).SerializeAsString();
  const auto skeleton = skeleton_of(in_memory(bytes), 100);
  ASSERT_TRUE(skeleton.ok() && skeleton->has_value());
  ASSERT_EQ((*skeleton)->initializers.size(), 2U);
  EXPECT_EQ((*skeleton)->initializers.at(0)->size_bytes(), 160U);
  EXPECT_EQ((*skeleton)->initializers.at(2)->size_bytes(), 400U);
  EXPECT_LT((*skeleton)->bytes.size(), bytes.size() - 550);
  EXPECT_EQ(whole(**skeleton), bytes);
  EXPECT_FALSE(skeleton_of(in_memory(bytes), 401)->has_value()) << "nothing is so large";
}

TEST(LargeData, WhatIsIrregularIsLeftToProtobuf) {
  const std::string bytes = model({40}).SerializeAsString();
  EXPECT_FALSE(skeleton_of(in_memory(bytes + bytes), 100)->has_value()) << "two graphs are merged";
  onnx::TensorProto tensor = model({40}).graph().initializer(0);
  std::string twice;
  tensor.SerializeToString(&twice);
  onnx::ModelProto other = model({});
  std::string text = other.SerializeAsString();
  // graph{initializer{… raw_data … raw_data}}, by hand: the last of two holds.
  const std::string doubled = twice + twice;
  const auto varint = [](std::size_t value) {
    std::string out;
    for (; value >= 128; value >>= 7) out.push_back(static_cast<char>(value | 128));
    return out + static_cast<char>(value);
  };
  const std::string graph = "\x2a" + varint(doubled.size()) + doubled;
  EXPECT_FALSE(skeleton_of(in_memory("\x08\x09\x3a" + varint(graph.size()) + graph), 100)->has_value());
  EXPECT_FALSE(skeleton_of(in_memory(std::string()), 100)->has_value());
}

TEST(LargeData, DamagedModelsAreReadAsProtobufReadsThem) {
  const std::string bytes = model({40, 3, 100}).SerializeAsString();
  std::mt19937 random(7);
  int cut_out = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    std::string damaged = bytes;
    if (trial % 4 == 0) damaged.resize(random() % bytes.size());
    for (auto change = random() % 3; change > 0 && !damaged.empty(); --change)
      damaged[random() % std::min<std::size_t>(damaged.size(), 120)] = static_cast<char>(random());
    const auto skeleton = skeleton_of(in_memory(damaged), 100);
    ASSERT_TRUE(skeleton.ok());
    if (!skeleton->has_value()) continue;
    ++cut_out;
    onnx::ModelProto right;
    const bool is_read = right.ParseFromString(damaged);
    ASSERT_EQ(whole(**skeleton), is_read ? right.SerializeAsString() : std::string()) << "trial " << trial;
  }
  EXPECT_GT(cut_out, 1000);
}

TEST(LargeData, TensorsAreTakenFromWhereTheyWereSetApart) {
  const std::string bytes = model({40000, 3}).SerializeAsString();
  auto apart = parse_model_apart(span_of(bytes));
  ASSERT_TRUE(apart.ok()) << apart.error().text();
  ASSERT_EQ(apart->data.size(), 1U);
  onnx::GraphProto& graph = *apart->model->mutable_graph();
  const std::byte* const data = apart->data.at(&graph.initializer(0))->data();
  ExternalData external(std::nullopt, std::move(apart->data));
  const auto large = take_tensor(*graph.mutable_initializer(0), external);
  ASSERT_TRUE(large.ok()) << large.error().text();
  EXPECT_EQ(large->view().data, data) << "taken, not copied";
  const onnx::ModelProto same = model({40000, 3});
  EXPECT_EQ(std::memcmp(data, same.graph().initializer(0).raw_data().data(), 160000), 0);
  EXPECT_TRUE(take_tensor(*graph.mutable_initializer(1), external).ok());
}

TEST(LargeData, WrongLengthsAndDataThatAreThereTwiceAreRefused) {
  onnx::ModelProto wrong = model({40000});
  wrong.mutable_graph()->mutable_initializer(0)->set_dims(0, 39999);
  onnx::ModelProto twice = model({40000});
  twice.mutable_graph()->mutable_initializer(0)->add_float_data(1);
  const auto refusal = [](const onnx::ModelProto& model) {
    auto apart = parse_model_apart(span_of(model.SerializeAsString()));
    EXPECT_EQ(apart->data.size(), 1U);
    ExternalData external(std::nullopt, std::move(apart->data));
    return take_tensor(*apart->model->mutable_graph()->mutable_initializer(0), external).error().message;
  };
  EXPECT_EQ(refusal(wrong), "raw_data holds 160000 bytes, but the tensor's type and shape need 159996.");
  EXPECT_EQ(refusal(twice), "the tensor's data are there twice (raw_data, a typed field, or an external file).");
}

TEST(LargeData, WhatCannotBeReadSaysSo) {
  std::string bytes = model({40000}).SerializeAsString();
  EXPECT_EQ(parse_model_apart(span_of(bytes.substr(0, 150000))).error().text(),
            parse_model(span_of(bytes.substr(0, 150000))).error().text());
  const ModelBytes shrinks = {
      static_cast<std::int64_t>(bytes.size()), [](std::int64_t, std::span<std::byte>) {
        return Result<void>(Error{ErrorCode::corrupt, "the file 'm.onnx' became shorter while it was read.", "Wait."});
      }};
  EXPECT_EQ(skeleton_of(shrinks).error().message, "the file 'm.onnx' became shorter while it was read.");
}

}  // namespace
}  // namespace polyphase::wire
