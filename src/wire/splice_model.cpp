// One walk over the fields of the model, one over those of its graph; what is not exchanged is copied as it lies.
#include "wire/splice_model.h"

#include <cstdint>

#include "wire/onnx_fields.h"
#include "wire/onnx_model.h"

namespace polyphase::wire {
namespace {

void append_message(std::uint32_t field, std::string_view message, std::string& out) {
  out += message_head(field, message.size());
  out += message;
}

struct WireField {
  std::uint64_t number = 0;
  std::uint64_t type = 0;
  std::string_view whole;     // with tag and length
  std::string_view contents;  // of a message
};

// The fields of a message, in their order.
class FieldReader {
 public:
  explicit FieldReader(std::string_view bytes) : left_(bytes) {}

  bool done() const { return left_.empty(); }
  // Nothing: what begins here is no field.
  std::optional<WireField> next() {
    const std::string_view begin = left_;
    WireField out;
    std::uint64_t tag = 0;
    if (!number(tag)) return std::nullopt;
    out.number = tag >> 3U;
    out.type = tag & 7U;
    std::uint64_t length = 0;
    if (out.type == 0) {
      if (!number(length)) return std::nullopt;
      length = 0;
    } else if (out.type == length_delimited) {
      if (!number(length)) return std::nullopt;
    } else if (out.type == 1 || out.type == 5) {
      length = out.type == 1 ? 8 : 4;
    } else {
      return std::nullopt;
    }
    if (out.number == 0 || length > left_.size()) return std::nullopt;
    out.contents = left_.substr(0, length);
    left_.remove_prefix(length);
    out.whole = begin.substr(0, begin.size() - left_.size());
    return out;
  }

 private:
  bool number(std::uint64_t& value) {
    value = 0;
    for (unsigned shift = 0; shift < 64 && !left_.empty(); shift += 7) {
      const auto byte = static_cast<std::uint8_t>(left_.front());
      left_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

  std::string_view left_;
};

Error in_pieces() {
  return Error{ErrorCode::unsupported, "the model's graph does not lie in the file in one piece.",
               "Write it again: onnx.save(onnx.load(FILE), FILE)."};
}

Result<std::string> splice_graph(std::string_view graph, const ModelSplice& splice) {
  std::string out;
  int node = 0;
  int initializer = 0;
  for (FieldReader fields(graph); !fields.done();) {
    const auto field = fields.next();
    if (!field.has_value()) return in_pieces();
    const bool message = field->type == length_delimited;
    if (message && field->number == graph_node) {
      if (const auto found = splice.nodes.find(node++); found != splice.nodes.end()) {
        for (const std::string& instead : found->second) append_message(graph_node, instead, out);
        continue;
      }
    }
    if (message && field->number == graph_initializer && splice.dropped_initializers.count(initializer++) != 0)
      continue;
    out += field->whole;
  }
  for (const std::string& tensor : splice.new_initializers) append_message(graph_initializer, tensor, out);
  return out;
}

}  // namespace

Result<std::string> splice_model(std::span<const std::byte> model, const ModelSplice& splice) {
  std::string out;
  bool graph_seen = false;
  int function = 0;
  const std::string_view bytes(reinterpret_cast<const char*>(model.data()), model.size());
  for (FieldReader fields(bytes); !fields.done();) {
    const auto field = fields.next();
    if (!field.has_value()) return in_pieces();
    if (field->number == model_opset_import && splice.opset_imports.has_value()) continue;
    const bool is_function = field->number == model_function && field->type == length_delimited;
    if (is_function && splice.dropped_functions.count(function++) != 0) continue;
    if (field->number != model_graph) {
      out += field->whole;
      continue;
    }
    if (graph_seen || field->type != length_delimited) return in_pieces();
    graph_seen = true;
    TRY(const std::string graph, splice_graph(field->contents, splice));
    append_message(model_graph, graph, out);
  }
  for (const std::string& opset : splice.opset_imports.value_or(std::vector<std::string>()))
    append_message(model_opset_import, opset, out);
  if (static_cast<std::int64_t>(out.size()) <= max_model_bytes) return out;
  return Error{ErrorCode::unsupported, "the model would be larger than an ONNX file can be (2 GiB).",
               "Save the weights beside it: onnx.save(model, FILE, save_as_external_data=True), and export that."};
}

}  // namespace polyphase::wire
