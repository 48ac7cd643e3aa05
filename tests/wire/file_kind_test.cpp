// Files that are not ONNX are named for what they are; damaged ones say where.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "onnx/onnx.pb.h"
#include "wire/onnx_model.h"
#include "wire/printable.h"

namespace polyphase::wire {
namespace {

using namespace std::string_view_literals;

std::string refusal(std::string_view bytes) {
  auto model = parse_model({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()});
  return model.ok() ? "parsed" : model.error().text();
}

TEST(FileKind, NamesWhatItIs) {
  const std::string advice =
      "Export the network from Python, by torch.export.save(torch.export.export(module, inputs), \"model.pt2\") or "
      "torch.onnx.export(module, inputs, \"model.onnx\"), and give that file.";
  EXPECT_EQ(refusal(""sv), "the file is empty. The download or the export did not finish; get the file again.");
  EXPECT_EQ(refusal("\0\0\0\0\0\0\0\0"sv),
            "the file is filled with zeros. The download or the copy did not finish; get the file again.");
  EXPECT_EQ(refusal("PK\x03\x04\0\0\0\0model/data.pkl"sv),
            "the file is a PyTorch archive (.pt, .pt2 or TorchScript), not an ONNX model. " + advice);
  EXPECT_EQ(refusal("PK\x03\x04\0\0\0\0x/archive_format"sv),
            "the file is a PyTorch archive (.pt, .pt2 or TorchScript), not an ONNX model. " + advice);
  EXPECT_EQ(refusal("\x80\x02}q\0."sv),
            "the file is a Python pickle (an old .pt or .pth file), not an ONNX model. " + advice);
  EXPECT_EQ(refusal("\x40\0\0\0\0\0\0\0{\"w\":{}}"sv),
            "the file is a safetensors file, not an ONNX model. It holds weights without the network; load them into "
            "the model in Python and export that as ONNX.");
  EXPECT_EQ(refusal("ftrt\0\0\0\0"sv),
            "the file is a TensorRT engine, not an ONNX model. A TensorRT engine cannot be read back; give the ONNX "
            "file that it was built from.");
  EXPECT_EQ(refusal("import torch\n"sv), "the file is a text file, not an ONNX model. Give an .onnx file.");
  EXPECT_EQ(refusal("ir_version: 8\ngraph {}"sv),
            "the file is an ONNX model in protobuf's text form, not an ONNX model. Convert it with "
            "onnx.save(onnx.load(FILE, format='textproto'), 'model.onnx').");
  EXPECT_EQ(
      refusal("version https://git-lfs.github.com/spec/v1\n"sv),
      "the file is a Git LFS pointer, not the file itself, not an ONNX model. Fetch the real file with git lfs pull.");
}

std::string small_model() {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.mutable_graph()->set_name(std::string(300, 'g'));
  return model.SerializeAsString();
}

TEST(ParseModel, EveryTruncationIsRefused) {
  const std::string whole = small_model();
  EXPECT_EQ(refusal(whole), "parsed");
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_NE(refusal(std::string_view(whole).substr(0, length)), "parsed") << length;
  EXPECT_EQ(refusal(std::string_view(whole).substr(0, 100)),
            "the ONNX file is truncated or damaged: field 7 at byte 2 claims 303 bytes, but only 95 are left (100 "
            "bytes in all). Download or export it again.");
}

TEST(ParseModel, TrailingGarbageIsRefused) { EXPECT_NE(refusal(small_model() + std::string(8, '\0')), "parsed"); }

TEST(ParseModel, NestedTooDeepIsRefused) {
  onnx::ModelProto model;
  onnx::GraphProto* graph = model.mutable_graph();
  for (int i = 0; i < 60; ++i) graph = graph->add_node()->add_attribute()->mutable_g();
  EXPECT_EQ(refusal(model.SerializeAsString()),
            "the bytes are not a sound ONNX model: a field inside breaks protobuf's rules, or subgraphs are nested "
            "more than 33 deep. "
            "Check the file with onnx.checker.check_model; download or export it again.");
}

TEST(ParseModel, WithoutGraphIsRefused) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  EXPECT_EQ(refusal(model.SerializeAsString()),
            "the file parses as protobuf, but it holds no graph, so it is not an ONNX model. Give an .onnx file; check "
            "it with onnx.checker.check_model.");
}

TEST(ReadModel, FoldersAndMissingFilesAreRefused) {
  EXPECT_EQ(read_model("/").error().text(), "'/' is a folder, not a file with data. Give the path of a plain file.");
  EXPECT_EQ(read_model("/dev/zero").error().text(),
            "'/dev/zero' is a device, not a file with data. Give the path of a plain file.");
  EXPECT_EQ(read_model("/no/such.onnx").error().text(),
            "the file '/no/such.onnx' cannot be opened: No such file or directory. Check that the path is right and "
            "that you may read it.");
}

TEST(Printable, EscapesAndShortens) {
  EXPECT_EQ(printable("a\n\x01\xff z"sv), "a\\x0a\\x01\\xff z");
  EXPECT_EQ(printable("é…"), "é…");
  EXPECT_EQ(printable(std::string(1000, 'x'), 10), "xxxxxxxxxx…(1000 bytes)");
}

}  // namespace
}  // namespace polyphase::wire
