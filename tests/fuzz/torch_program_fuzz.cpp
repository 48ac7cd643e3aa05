// Random bytes as a program of torch.export: refused with an Error, or a graph that the verifier accepts.
//
// The first byte says what the others are: 'Z' a whole archive, 'J' the program's JSON, 'P' the pickled weights of a
// program with two of them. For the last two an archive with right checksums is built around the bytes.
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "import/torch/import_torch.h"

namespace {

using polyphase::wire::ZipArchive;
using Members = std::vector<std::pair<std::string, std::string>>;

std::uint32_t checksum(std::string_view bytes) {
  std::uint32_t crc = ~0U;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1U) != 0 ? 0xEDB88320U : 0U);
  }
  return ~crc;
}

void put(std::string& out, std::uint64_t value, int width) {
  for (int i = 0; i < width; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
}

// Stored members, then their list, then its place.
std::string archive_of(const Members& members) {
  std::string out;
  std::string list;
  for (const auto& [name, content] : members) {
    std::string head;
    put(head, 20, 2);  // version
    put(head, 0, 4);   // flags, method
    put(head, 0, 4);   // time, date
    put(head, checksum(content), 4);
    put(head, content.size(), 4);
    put(head, content.size(), 4);
    put(head, name.size(), 2);
    put(head, 0, 2);
    list += "PK\x01\x02";
    put(list, 20, 2);
    list += head;
    put(list, 0, 6);  // comment, disk, inner attributes
    put(list, 0, 4);  // outer attributes
    put(list, out.size(), 4);
    list += name;
    out += "PK\x03\x04" + head + name + content;
  }
  const std::size_t begin = out.size();
  out += list + "PK\x05\x06";
  put(out, 0, 4);
  put(out, members.size(), 2);
  put(out, members.size(), 2);
  put(out, list.size(), 4);
  put(out, begin, 4);
  put(out, 0, 2);
  return out;
}

// y = x + a + b, with a and b out of the pickle.
constexpr std::string_view sum = R"({"graph_module": {"graph": {"inputs": [{"as_tensor": {"name": "a"}}, {"as_tensor":
{"name": "b"}}, {"as_tensor": {"name": "x"}}], "outputs": [{"as_tensor": {"name": "z"}}], "nodes": [{"target":
"torch.ops.aten.add.Tensor", "inputs": [{"name": "self", "arg": {"as_tensor": {"name": "x"}}}, {"name": "other", "arg":
{"as_tensor": {"name": "a"}}}], "outputs": [{"as_tensor": {"name": "y"}}], "metadata": {}}, {"target":
"torch.ops.aten.add.Tensor", "inputs": [{"name": "self", "arg": {"as_tensor": {"name": "y"}}}, {"name": "other", "arg":
{"as_tensor": {"name": "b"}}}], "outputs": [{"as_tensor": {"name": "z"}}], "metadata": {}}], "tensor_values": {"x":
{"dtype": 7, "sizes": [{"as_int": 3}], "strides": [{"as_int": 1}], "storage_offset": {"as_int": 0}, "layout": 7}},
"sym_int_values": {}, "sym_bool_values": {}}, "signature": {"input_specs": [{"parameter": {"arg": {"name": "a"},
"parameter_name": "a"}}, {"buffer": {"arg": {"name": "b"}, "buffer_name": "b", "persistent": true}}, {"user_input":
{"arg": {"as_tensor": {"name": "x"}}}}], "output_specs": [{"user_output": {"arg": {"as_tensor": {"name": "z"}}}}]},
"module_call_graph": []}, "range_constraints": {}, "schema_version": {"major": 8, "minor": 2}})";

std::string wrapped(char kind, std::string_view rest) {
  constexpr const char* program = "serialized_exported_program.json";
  if (kind == 'J') return archive_of({{program, std::string(rest)}});
  const std::string weights = archive_of({{"archive/data.pkl", std::string(rest)},
                                          {"archive/data/0", std::string(64, '\x3f')},
                                          {"archive/data/1", std::string(12, '\x40')}});
  return archive_of({{program, std::string(sum)}, {"serialized_state_dict.pt", weights}});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace polyphase;
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  const bool whole = bytes[0] == 'Z';
  const std::string built = whole ? std::string() : wrapped(static_cast<char>(bytes[0]), rest);
  const std::string_view file = whole ? rest : std::string_view(built);
  auto archive = ZipArchive::of_bytes(std::span(reinterpret_cast<const std::byte*>(file.data()), file.size()));
  if (!archive.ok()) return 0;
  static const Registry registry = Registry::built_in();
  const ImportOptions options{.max_nodes = 2000};
  const auto model = import_torch(std::move(archive).value(), registry, options);
  if (!model.ok()) return 0;
  const auto verified = verify(*model->graph);
  if (verified.ok()) return 0;
  std::fprintf(stderr, "torch_program_fuzz: a graph was made that the verifier refuses: %s\n",
               verified.error().text().c_str());
  std::abort();
}
