// TensorProto → Tensor: every way to store elements, and every length that is wrong.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "onnx/onnx.pb.h"
#include "wire/onnx_tensor.h"

namespace polyphase::wire {
namespace {

using onnx::TensorProto;

TensorProto tensor(int type, std::initializer_list<std::int64_t> dims) {
  TensorProto proto;
  proto.set_data_type(type);
  for (const std::int64_t dim : dims) proto.add_dims(dim);
  return proto;
}

Result<Tensor> take(TensorProto proto) {
  ExternalData external(std::nullopt);
  return take_tensor(proto, external);
}

std::vector<double> values(const Tensor& t) {
  std::vector<double> out;
  for (std::int64_t i = 0; i < t.view().element_count(); ++i)
    out.push_back(load_double(t.view().data + static_cast<std::size_t>(i) * size_bytes(t.dtype()), t.dtype()));
  return out;
}

using Doubles = std::vector<double>;

TEST(TakeTensor, TypedFields) {
  TensorProto floats = tensor(TensorProto::FLOAT, {2});
  floats.add_float_data(1.5F);
  floats.add_float_data(-2);
  EXPECT_EQ(values(*take(floats)), (Doubles{1.5, -2}));
  TensorProto halves = tensor(TensorProto::FLOAT16, {1});
  halves.add_int32_data(0x3e00);
  EXPECT_EQ(values(*take(halves)), (Doubles{1.5}));
  TensorProto bytes = tensor(TensorProto::INT8, {2});
  bytes.add_int32_data(-128);
  bytes.add_int32_data(127);
  EXPECT_EQ(values(*take(bytes)), (Doubles{-128, 127}));
  bytes.set_int32_data(0, 128);
  EXPECT_EQ(take(bytes).error().text(),
            "int32_data holds 128, which its element type i8 cannot. The model is damaged: export it again.");
  TensorProto big = tensor(TensorProto::UINT32, {1});
  big.add_uint64_data(4294967295U);
  EXPECT_EQ(values(*take(big)), (Doubles{4294967295.0}));
  TensorProto nibbles = tensor(TensorProto::INT4, {3});
  nibbles.add_int32_data(0x7f);  // -1, 7
  nibbles.add_int32_data(0x08);  // -8
  EXPECT_EQ(values(*take(nibbles)), (Doubles{-1, 7, -8}));
}

TEST(TakeTensor, RawBytesAreTakenNotCopied) {
  TensorProto proto = tensor(TensorProto::FLOAT, {100});
  proto.set_raw_data(std::string(400, '\0'));
  const void* before = proto.raw_data().data();
  ExternalData external(std::nullopt);
  const auto taken = take_tensor(proto, external);
  ASSERT_TRUE(taken.ok());
  EXPECT_EQ(taken->view().data, before);
  TensorProto nibbles = tensor(TensorProto::UINT4, {3});
  nibbles.set_raw_data(std::string("\xf1\x02", 2));
  EXPECT_EQ(values(*take(nibbles)), (Doubles{1, 15, 2}));
  TensorProto flags = tensor(TensorProto::BOOL, {3});
  flags.set_raw_data(std::string("\x00\x02\x01", 3));
  EXPECT_EQ(values(*take(flags)), (Doubles{0, 1, 1}));
  EXPECT_EQ(values(*take(tensor(TensorProto::FLOAT, {0, 3}))), Doubles{});
}

TEST(TakeTensor, WrongLengthsAreRefused) {
  const std::string again = " The model is damaged: export it again.";
  TensorProto proto = tensor(TensorProto::FLOAT, {2});
  EXPECT_EQ(take(proto).error().text(), "the tensor has no data, but its type and shape need 8 bytes." + again);
  for (const std::size_t length : {1, 7, 9, 12}) {
    proto.set_raw_data(std::string(length, 'x'));
    EXPECT_EQ(take(proto).error().text(),
              "raw_data holds " + std::to_string(length) + " bytes, but the tensor's type and shape need 8." + again);
  }
  proto.set_raw_data(std::string(8, 'x'));
  proto.add_float_data(1);
  EXPECT_EQ(take(proto).error().text(),
            "the tensor's data are there twice (raw_data, a typed field, or an external file)." + again);
  proto.clear_raw_data();
  EXPECT_EQ(take(proto).error().text(), "float_data holds 1 entries, but the tensor's shape needs 2." + again);
  TensorProto other = tensor(TensorProto::INT64, {1});
  other.add_float_data(1);
  EXPECT_EQ(take(other).error().text(),
            "the tensor's data lie in a field that is not the one of its element type, or in two fields." + again);
}

TEST(TakeTensor, HostileSizesAreRefused) {
  const std::string again = " The model is damaged: export it again.";
  EXPECT_EQ(take(tensor(TensorProto::FLOAT, {-1})).error().text(), "the tensor has a negative size, -1." + again);
  EXPECT_EQ(take(tensor(TensorProto::FLOAT, {INT64_MAX, 2})).error().text(),
            "the tensor's sizes multiply to more than 64 bits hold." + again);
  EXPECT_EQ(take(tensor(TensorProto::FLOAT, {INT64_MAX, 0, 2})).error().text(),
            "the tensor's sizes multiply to more than 64 bits hold." + again);
  TensorProto bomb = tensor(TensorProto::FLOAT, {INT64_C(1) << 40});
  bomb.add_float_data(1);
  EXPECT_EQ(take(bomb).error().text(),
            "the tensor's data field holds 1 entries, but its shape needs 1099511627776." + again);
  TensorProto many = tensor(TensorProto::FLOAT, {1, 1, 1, 1, 1, 1, 1, 1, 1});
  EXPECT_EQ(take(many).error().text(), "the tensor has rank 9; the highest rank is 8. Reshape it before the export.");
}

TEST(TakeTensor, TypesThatWeLackAreRefused) {
  EXPECT_EQ(take(tensor(TensorProto::STRING, {1})).error().text(),
            "elements of type STRING are not supported. Take text processing out of the model; feed numbers.");
  EXPECT_EQ(take(tensor(TensorProto::COMPLEX64, {1})).error().text(),
            "elements of type COMPLEX64 are not supported. Write complex numbers as a last axis of two floats "
            "(torch.view_as_real).");
  EXPECT_EQ(take(tensor(99, {1})).error().text(), "ONNX has no element type 99. Export the model again.");
  TensorProto segment = tensor(TensorProto::FLOAT, {1});
  segment.mutable_segment()->set_begin(0);
  EXPECT_EQ(take(segment).error().text(),
            "the tensor is stored in segments. Save the model again with a current onnx package.");
}

onnx::SparseTensorProto sparse(std::initializer_list<std::int64_t> dims, std::initializer_list<std::int64_t> places) {
  onnx::SparseTensorProto proto;
  *proto.mutable_values() = tensor(TensorProto::FLOAT, {static_cast<std::int64_t>(places.size())});
  *proto.mutable_indices() = tensor(TensorProto::INT64, {static_cast<std::int64_t>(places.size())});
  for (const std::int64_t place : places) {
    proto.mutable_values()->add_float_data(static_cast<float>(place) + 1);
    proto.mutable_indices()->add_int64_data(place);
  }
  for (const std::int64_t dim : dims) proto.add_dims(dim);
  return proto;
}

Result<Tensor> densify(onnx::SparseTensorProto proto) {
  ExternalData external(std::nullopt);
  DenseBudget budget;
  return take_sparse_tensor(proto, external, budget);
}

TEST(TakeSparseTensor, BecomesDense) {
  EXPECT_EQ(values(*densify(sparse({2, 3}, {0, 4}))), (Doubles{1, 0, 0, 0, 5, 0}));
  auto coordinates = sparse({2, 3}, {1});
  coordinates.mutable_indices()->add_dims(2);
  coordinates.mutable_indices()->add_int64_data(2);
  EXPECT_EQ(values(*densify(coordinates)), (Doubles{0, 0, 0, 0, 0, 2}));
}

TEST(TakeSparseTensor, WrongIndicesAreRefused) {
  const std::string again = " The model is damaged: export it again, with dense weights.";
  EXPECT_EQ(densify(sparse({2, 3}, {6})).error().text(), "a sparse tensor names place 6 of 6." + again);
  EXPECT_EQ(densify(sparse({2, 3}, {-1})).error().text(), "a sparse tensor names place -1 of 6." + again);
  EXPECT_EQ(densify(sparse({2, 3}, {4, 0})).error().text(),
            "a sparse tensor has indices that are not in ascending order, or one of them twice." + again);
  EXPECT_EQ(densify(sparse({2, 3}, {4, 4})).error().text(),
            "a sparse tensor has indices that are not in ascending order, or one of them twice." + again);
  EXPECT_EQ(densify(sparse({INT64_C(1) << 40}, {0})).error().text(),
            "a sparse tensor would take 4398046511104 bytes as a dense one, more than the limit. Sparse tensors may "
            "take 1 GiB in all; store large weights dense.");
}

}  // namespace
}  // namespace polyphase::wire
