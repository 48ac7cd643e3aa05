// What the calls in a pickled dictionary of tensors mean.
#include "import/torch/pickled_tensors.h"

#include <array>
#include <optional>
#include <vector>

#include "base/shape.h"
#include "import/torch/pickle.h"
#include "wire/printable.h"

namespace polyphase {
namespace {

using Kind = PickleValue::Kind;

enum class Function {
  ordered_dict,
  tensor,
  tensor_of_dtype,
  parameter,
  parameter_with_state,
  tensor_with_state,
  type,
  dtype,
};

struct Known {
  std::string_view name;
  Function function;
  std::optional<DType> of = std::nullopt;  // of storages and dtypes
};

constexpr std::size_t longest_name = 10'000;

// All that these pickles may name.
constexpr auto known = std::to_array<Known>({
    {"collections OrderedDict", Function::ordered_dict},
    {"torch._utils _rebuild_tensor_v2", Function::tensor},
    {"torch._utils _rebuild_tensor_v3", Function::tensor_of_dtype},
    {"torch._utils _rebuild_parameter", Function::parameter},
    {"torch._utils _rebuild_parameter_with_state", Function::parameter_with_state},
    {"torch._tensor _rebuild_from_type_v2", Function::tensor_with_state},
    {"torch Tensor", Function::type},
    {"torch.nn.parameter Parameter", Function::type},
    {"torch.nn.parameter Buffer", Function::type},
    {"torch.storage UntypedStorage", Function::dtype},
    {"torch FloatStorage", Function::dtype, DType::f32},
    {"torch DoubleStorage", Function::dtype, DType::f64},
    {"torch HalfStorage", Function::dtype, DType::f16},
    {"torch BFloat16Storage", Function::dtype, DType::bf16},
    {"torch LongStorage", Function::dtype, DType::i64},
    {"torch IntStorage", Function::dtype, DType::i32},
    {"torch ShortStorage", Function::dtype, DType::i16},
    {"torch CharStorage", Function::dtype, DType::i8},
    {"torch ByteStorage", Function::dtype, DType::u8},
    {"torch BoolStorage", Function::dtype, DType::boolean},
    {"torch uint16", Function::dtype, DType::u16},
    {"torch uint32", Function::dtype, DType::u32},
    {"torch uint64", Function::dtype, DType::u64},
    {"torch float8_e4m3fn", Function::dtype, DType::f8e4m3},
    {"torch float8_e5m2", Function::dtype, DType::f8e5m2},
});

std::vector<std::string_view> known_names() {
  std::vector<std::string_view> names;
  for (const Known& one : known) names.push_back(one.name);
  return names;
}

}  // namespace

// The calls inside one pickle.
class PickledDictionary {
 public:
  explicit PickledDictionary(const Pickle& pickle) : pickle_(pickle) {}

  // Key, value, key, value, …; null: it is no dictionary.
  const std::vector<std::uint32_t>* entries(std::size_t& begin) const {
    const PickleValue& root = pickle_[pickle_.root];
    begin = root.kind == Kind::call ? 2 : 0;
    const bool dictionary =
        root.kind == Kind::dict ||
        (root.kind == Kind::call && function_of(root.entries[0])->function == Function::ordered_dict);
    return dictionary ? &root.entries : nullptr;
  }

  // Nothing: it is no tensor.
  std::optional<PickledTensors::Entry> tensor(std::uint32_t value) const {
    // Parameters are wrapped calls; a wrapper lies around at most one other.
    for (int wrapped = 0; wrapped < 3; ++wrapped) {
      const PickleValue& call = pickle_[value];
      if (call.kind != Kind::call) return std::nullopt;
      const Known* const what = function_of(call.entries[0]);
      const auto& arguments = pickle_[call.entries[1]].entries;
      switch (what->function) {
        case Function::parameter:
        case Function::parameter_with_state:
          if (arguments.empty()) return std::nullopt;
          value = arguments[0];
          break;
        case Function::tensor_with_state:  // (function, type, arguments, state)
          if (arguments.size() < 3) return std::nullopt;
          return rebuilt(arguments[0], pickle_[arguments[2]].entries);
        default:
          return rebuilt(call.entries[0], arguments);
      }
    }
    return std::nullopt;
  }

  const PickleValue& operator[](std::uint32_t value) const { return pickle_[value]; }

 private:
  const Known* function_of(std::uint32_t value) const {
    const PickleValue& function = pickle_[value];
    return function.kind == Kind::function ? &known[static_cast<std::size_t>(function.integer)] : nullptr;
  }
  std::optional<std::vector<std::int64_t>> integers(std::uint32_t value) const {
    const PickleValue& list = pickle_[value];
    if (list.kind != Kind::tuple || list.entries.size() > static_cast<std::size_t>(max_rank)) return std::nullopt;
    std::vector<std::int64_t> out;
    for (const std::uint32_t entry : list.entries) {
      if (pickle_[entry].kind != Kind::integer) return std::nullopt;
      out.push_back(pickle_[entry].integer);
    }
    return out;
  }
  // (storage, offset, sizes, strides, …); of _rebuild_tensor_v3 the seventh is the dtype.
  std::optional<PickledTensors::Entry> rebuilt(std::uint32_t function, const std::vector<std::uint32_t>& given) const {
    const Known* const what = function_of(function);
    const bool typed = what != nullptr && what->function == Function::tensor_of_dtype;
    if (what == nullptr || (what->function != Function::tensor && !typed)) return std::nullopt;
    if (given.size() < (typed ? 7 : 4) || pickle_[given[0]].kind != Kind::persistent) return std::nullopt;
    // ("storage", type, key, device, element count)
    const auto& identity = pickle_[pickle_[given[0]].entries[0]].entries;
    if (identity.size() < 3 || pickle_[identity[2]].kind != Kind::text) return std::nullopt;
    const Known* const type = function_of(typed ? given[6] : identity[1]);
    auto sizes = integers(given[2]);
    auto strides = integers(given[3]);
    if (type == nullptr || !type->of.has_value() || pickle_[given[1]].kind != Kind::integer || !sizes.has_value() ||
        !strides.has_value())
      return std::nullopt;
    PickledTensors::Entry out;
    out.storage = std::string(pickle_[identity[2]].text.substr(0, 100));
    out.layout = {*type->of, std::move(*sizes), std::move(*strides), pickle_[given[1]].integer};
    return out;
  }

  const Pickle& pickle_;
};

Result<PickledTensors> PickledTensors::open(std::shared_ptr<Buffer> bytes) {
  TRY(auto archive, wire::ZipArchive::of_bytes({bytes->data(), bytes->size_bytes()}));
  constexpr std::string_view dictionary = "data.pkl";
  std::optional<std::string> root;
  for (const std::string& name : archive.names()) {
    const bool found = name.size() >= dictionary.size() && name.substr(name.size() - dictionary.size()) == dictionary;
    if (found) root = name.substr(0, name.size() - dictionary.size());
  }
  if (!root.has_value()) return damaged_archive("the pickled weights hold no data.pkl");
  PickledTensors out(std::move(bytes), std::move(archive), std::move(*root));
  TRY_VOID(out.read_names());
  return out;
}

Result<void> PickledTensors::read_names() {
  if (archive_.has(root_ + "byteorder")) {
    TRY(const std::string order, archive_.read_text(root_ + "byteorder"));
    if (order.rfind("little", 0) != 0)
      return Error{ErrorCode::unsupported, "the pickled weights' numbers are " + wire::quoted_name(order) + "-endian.",
                   "Save the program on a machine whose numbers are little-endian."};
  }
  TRY(const std::string text, archive_.read_text(root_ + "data.pkl"));
  const std::vector<std::string_view> names = known_names();
  TRY(const Pickle pickle, read_pickle(text, names));
  const PickledDictionary dictionary(pickle);
  std::size_t begin = 0;
  const auto* const entries = dictionary.entries(begin);
  if (entries == nullptr) return damaged_archive("the pickled weights are no dictionary of tensors");
  for (std::size_t i = begin; i + 1 < entries->size(); i += 2) {
    const PickleValue& name = dictionary[(*entries)[i]];
    if (name.kind != Kind::text) continue;
    if (name.text.size() > longest_name) return damaged_archive("a pickled weight has a name of many pages");
    if (auto tensor = dictionary.tensor((*entries)[i + 1]); tensor.has_value())
      tensors_.insert_or_assign(std::string(name.text), std::move(*tensor));
  }
  return {};
}

Result<Tensor> PickledTensors::tensor(const std::string& name) {
  const auto found = tensors_.find(name);
  const std::string shown = "weight " + wire::quoted_name(name);
  if (found == tensors_.end())
    return Error{ErrorCode::unsupported, shown + " is an object of Python, not a plain tensor.",
                 "Replace it by a plain tensor before the export."};
  const Entry& entry = found->second;
  auto& bytes = storages_[entry.storage];
  if (bytes == nullptr) {
    TRY(bytes, archive_.read(root_ + "data/" + entry.storage));
  }
  return tensor_in_storage(bytes, entry.layout, shown);
}

}  // namespace polyphase
