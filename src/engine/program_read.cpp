// FlatBuffers → Engine: every enum in range, every text read back, every constant inside its section.
#include <flatbuffers/flatbuffers.h>

#include <algorithm>
#include <set>

#include "engine/engine_generated.h"
#include "engine/file_header.h"
#include "engine/program.h"
#include "ops/custom.h"

namespace polyphase {
namespace {

constexpr std::size_t max_dim_text = 1 << 16;
constexpr std::uint32_t max_verifier_depth = 64;
constexpr std::uint32_t max_verifier_tables = 20'000'000;

Error refuse(std::string message) {
  return {ErrorCode::corrupt, "the program contradicts itself: " + std::move(message), "Compile the model again."};
}

std::string word(const flatbuffers::String* text) { return text == nullptr ? std::string() : text->str(); }

using TextVector = flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>;

std::vector<std::string> words(const TextVector* texts) {
  std::vector<std::string> out;
  if (texts == nullptr) return out;
  for (const auto* text : *texts) out.push_back(word(text));
  return out;
}

// A name out of the file as it may stand in a message.
std::string shown(const std::string& name) {
  std::string out = name.substr(0, 120);
  std::replace_if(
      out.begin(), out.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return out;
}

std::vector<int> integers(const flatbuffers::Vector<std::int32_t>* items) {
  return items == nullptr ? std::vector<int>() : std::vector<int>(items->begin(), items->end());
}

class ProgramReader {
 public:
  ProgramReader(const Registry& registry, const std::shared_ptr<Buffer>& file, std::uint64_t constants_offset,
                std::uint64_t constants_size)
      : registry_(registry), file_(file), constants_offset_(constants_offset), constants_size_(constants_size) {}

  Result<Engine> read(const program::Program& from) {
    engine_.model_name = word(from.model_name());
    engine_.producer = word(from.producer());
    engine_.cluster = word(from.cluster());
    engine_.remarks = words(from.remarks());
    TRY_VOID(each(from.plugins(), [&](const program::PluginUse& item) { return plugin(item); }));
    TRY_VOID(each(from.symbols(), [&](const program::Symbol& item) { return symbol(item); }));
    TRY_VOID(each(from.inputs(), [&](const program::Port& item) { return port(item, engine_.inputs); }));
    TRY_VOID(each(from.outputs(), [&](const program::Port& item) { return port(item, engine_.outputs); }));
    TRY_VOID(each(from.values(), [&](const program::Value& item) { return value(item); }));
    TRY_VOID(each(from.constants(), [&](const program::Constant& item) { return constant(item); }));
    TRY_VOID(each(from.blocks(), [&](const program::Block& item) { return block(item); }));
    TRY_VOID(each(from.checks(), [&](const program::Check& item) { return check(item); }));
    if (from.recipes() != nullptr) TRY_VOID(recipes(*from.recipes()));
    TRY_VOID(each(from.cuts(), [&](const program::Cut& item) { return cut(item); }));
    return std::move(engine_);
  }

 private:
  template <typename Vector, typename F>
  Result<void> each(const Vector* items, F&& read_one) {
    if (items == nullptr) return {};
    for (const auto* item : *items) {
      if (item == nullptr) return refuse("an entry is missing.");
      TRY_VOID(read_one(*item));
    }
    return {};
  }

  Result<void> symbol(const program::Symbol& item) {
    if (item.low() > item.high()) return refuse("size '" + word(item.name()) + "' has an empty range.");
    if (!engine_.symbols.emplace(word(item.name()), DimRange{item.low(), item.high()}).second) {
      return refuse("size '" + word(item.name()) + "' is declared twice.");
    }
    return {};
  }

  // Which plugins are here, for whoever looks for another.
  std::string known_plugins() const {
    std::string out;
    for (const auto& [name, op] : registry_.all()) {
      if (op->custom != nullptr)
        out += (out.empty() ? "" : ", ") + name + " version " + std::to_string(op->custom->version());
    }
    return out.empty() ? "none is given" : "given are " + out;
  }

  Result<void> plugin(const program::PluginUse& item) {
    const std::string name = word(item.op());
    const OpDef* op = registry_.find(name);
    const std::string wanted = "the engine needs operator '" + shown(name) + "', version " +
                               std::to_string(item.version()) + ", of the plugin '" +
                               shown(name.substr(0, name.find('.'))) + "'";
    if (op == nullptr || op->custom == nullptr) {
      return Error{ErrorCode::incompatible, wanted + "; " + known_plugins() + ".",
                   "Give the plugin's library: --plugin FILE, plugins=[FILE] in Python, or Engine::load's plugins."};
    }
    if (op->custom->version() != item.version()) {
      return Error{ErrorCode::incompatible,
                   wanted + "; the plugin given has version " + std::to_string(op->custom->version()) + ".",
                   "Give the plugin that the engine was compiled with, or compile the model again with this one."};
    }
    declared_plugins_.insert(name);
    return {};
  }

  Result<void> port(const program::Port& item, std::vector<EnginePort>& ports) {
    ports.push_back({word(item.name()), item.value()});
    return {};
  }

  Result<Dim> dim(const flatbuffers::String* text) {
    const std::string digits = word(text);
    if (digits.size() > max_dim_text)
      return refuse("a size expression has " + std::to_string(digits.size()) + " characters.");
    auto parsed = parse_dim(digits, engine_.symbols);
    if (!parsed.ok()) return refuse(parsed.error().message);
    TRY_VOID(known_symbols(*parsed));
    return parsed;
  }

  Result<void> known_symbols(const Dim& size) {
    if (size.is_constant()) return {};
    std::map<std::string, DimRange, std::less<>> used;
    size.collect_symbols(used);
    for (const auto& [name, range] : used) {
      if (engine_.symbols.find(name) == engine_.symbols.end()) return refuse("size '" + name + "' is not declared.");
    }
    return {};
  }

  Result<std::vector<Dim>> dims(const TextVector* texts) {
    std::vector<Dim> out;
    if (texts == nullptr) return out;
    if (texts->size() > static_cast<std::size_t>(max_rank))
      return refuse("a tensor has " + std::to_string(texts->size()) + " axes.");
    for (const auto* text : *texts) {
      TRY(Dim size, dim(text));
      out.push_back(std::move(size));
    }
    return out;
  }

  Result<void> value(const program::Value& item) {
    EngineValue out;
    out.name = word(item.name());
    if (item.dtype() >= dtype_count)
      return refuse("value '" + out.name + "' has dtype number " + std::to_string(item.dtype()) + ".");
    out.type.dtype = static_cast<DType>(item.dtype());
    TRY(std::vector<Dim> sizes, dims(item.shape()));
    out.type.shape = Shape(std::move(sizes));
    std::vector<std::uint8_t> order;
    if (item.layout() != nullptr) order.assign(item.layout()->begin(), item.layout()->end());
    std::vector<bool> seen(order.size(), false);
    for (const std::uint8_t axis : order) {
      if (axis >= order.size() || seen[axis])
        return refuse("the layout of value '" + out.name + "' is no order of its axes.");
      seen[axis] = true;
    }
    if (order.size() != static_cast<std::size_t>(out.type.shape.rank())) {
      return refuse("the layout of value '" + out.name + "' orders " + std::to_string(order.size()) + " of " +
                    std::to_string(out.type.shape.rank()) + " axes.");
    }
    out.layout = Layout(std::move(order));
    if (item.storage() > static_cast<std::uint8_t>(Storage::alias)) {
      return refuse("value '" + out.name + "' has storage number " + std::to_string(item.storage()) + ".");
    }
    out.storage = static_cast<Storage>(item.storage());
    out.constant = item.constant();
    out.recipe = item.recipe();
    out.alias.value = item.alias();
    if (out.storage == Storage::alias) {
      TRY(out.alias.offset, dim(item.alias_offset()));
      TRY(out.alias.strides, dims(item.alias_strides()));
    }
    engine_.values.push_back(std::move(out));
    return {};
  }

  Result<void> constant(const program::Constant& item) {
    EngineConstant out;
    out.name = word(item.name());
    out.format = word(item.format());
    if (item.offset() % constant_alignment_bytes != 0 || item.offset() > constants_size_ ||
        item.size() > constants_size_ - item.offset()) {
      return refuse("constant '" + out.name + "' lies outside its section or is not aligned.");
    }
    const std::byte* data = file_->data() + constants_offset_ + item.offset();
    out.bytes = Buffer::borrow(file_, data, static_cast<std::size_t>(item.size()));
    engine_.constants.push_back(std::move(out));
    return {};
  }

  Result<Part> part(const program::Part& item) {
    Part out;
    const std::string op = word(item.op());
    out.op = registry_.find(op);
    if (out.op == nullptr) {
      return Error{ErrorCode::incompatible,
                   "the engine uses operator '" + op + "', which this Polyphase does not have.",
                   "Update Polyphase, load the plugin that defines it, or compile the model again with this version."};
    }
    if (out.op->custom != nullptr && declared_plugins_.find(op) == declared_plugins_.end())
      return refuse("it uses the plugin's operator '" + op + "' without saying of which version.");
    auto given = parse_attributes(word(item.attributes()), out.op->attributes, engine_.symbols);
    if (!given.ok()) return refuse("attributes of '" + op + "': " + given.error().message);
    auto complete = out.op->complete(std::move(given).value());
    if (!complete.ok()) return refuse("attributes of '" + op + "': " + complete.error().message);
    out.attributes = std::move(complete).value();
    std::map<std::string, DimRange, std::less<>> used;
    out.attributes.collect_symbols(used);
    for (const auto& [name, range] : used) {
      if (engine_.symbols.find(name) == engine_.symbols.end()) return refuse("size '" + name + "' is not declared.");
    }
    out.operands = integers(item.operands());
    return out;
  }

  Result<Step> step(const program::Step& item) {
    Step out;
    out.name = word(item.name());
    if (item.kind() > static_cast<std::uint8_t>(StepKind::loop)) {
      return refuse("step '" + out.name + "' has kind number " + std::to_string(item.kind()) + ".");
    }
    out.kind = static_cast<StepKind>(item.kind());
    TRY_VOID(each(item.parts(), [&](const program::Part& from) -> Result<void> {
      TRY(Part one, part(from));
      out.parts.push_back(std::move(one));
      return {};
    }));
    out.anchor = item.anchor();
    out.inputs = integers(item.inputs());
    out.outputs = integers(item.outputs());
    out.rows = words(item.rows());
    out.packed = item.packed();
    out.pack_at_run = item.pack_at_run();
    out.symbols = words(item.symbols());
    out.blocks = integers(item.blocks());
    out.measured = item.measured();
    return out;
  }

  Result<void> block(const program::Block& item) {
    Block out;
    out.inputs = integers(item.inputs());
    out.outputs = integers(item.outputs());
    TRY_VOID(each(item.steps(), [&](const program::Step& from) -> Result<void> {
      TRY(Step one, step(from));
      out.steps.push_back(std::move(one));
      return {};
    }));
    engine_.blocks.push_back(std::move(out));
    return {};
  }

  template <typename Item, typename Out>
  Result<void> type_of(const Item& item, Out& out) {
    if (item.dtype() >= dtype_count) return refuse("a weight has dtype number " + std::to_string(item.dtype()) + ".");
    out.dtype = static_cast<DType>(item.dtype());
    if (item.sizes() != nullptr) out.sizes.assign(item.sizes()->begin(), item.sizes()->end());
    if (out.sizes.size() > static_cast<std::size_t>(max_rank))
      return refuse("a weight has " + std::to_string(out.sizes.size()) + " axes.");
    return {};
  }

  Result<void> weight(const program::Weight& item) {
    EngineWeight out;
    out.names = words(item.names());
    TRY_VOID(type_of(item, out));
    if (item.state() > static_cast<std::uint8_t>(EngineWeight::State::fixed))
      return refuse("a weight has state number " + std::to_string(item.state()) + ".");
    out.state = static_cast<EngineWeight::State>(item.state());
    out.fixed_because = word(item.fixed_because());
    out.checksum = item.checksum();
    out.kept = item.kept();
    engine_.recipes.weights.push_back(std::move(out));
    return {};
  }

  Result<void> recipe_table(const program::RecipeTable& item) {
    RecipeTable out;
    TRY_VOID(type_of(item, out));
    out.constant = item.constant();
    engine_.recipes.tables.push_back(std::move(out));
    return {};
  }

  Result<void> recipe_node(const program::RecipeNode& item) {
    if (item.part() == nullptr) return refuse("an entry is missing.");
    TRY(Part one, part(*item.part()));
    engine_.recipes.nodes.push_back({std::move(one), integers(item.inputs()), {}});
    return {};
  }

  Result<void> recipes(const program::Recipes& from) {
    engine_.recipes.refittable = true;
    TRY_VOID(each(from.weights(), [&](const program::Weight& item) { return weight(item); }));
    TRY_VOID(each(from.tables(), [&](const program::RecipeTable& item) { return recipe_table(item); }));
    return each(from.nodes(), [&](const program::RecipeNode& item) { return recipe_node(item); });
  }

  Result<std::vector<CutState>> cut_states(const flatbuffers::Vector<flatbuffers::Offset<program::CutState>>* items) {
    std::vector<CutState> out;
    TRY_VOID(each(items, [&](const program::CutState& item) -> Result<void> {
      out.push_back({item.axis(), item.up(), item.down(), item.low(), item.high()});
      return {};
    }));
    return out;
  }

  Result<void> cut(const program::Cut& item) {
    EngineCut out;
    out.symbol = word(item.symbol());
    out.node = word(item.node());
    out.refusal = word(item.refusal());
    out.step = item.step();
    TRY(out.inputs, cut_states(item.inputs()));
    TRY(out.outputs, cut_states(item.outputs()));
    TRY_VOID(each(item.needs(), [&](const program::CutNeed& need) -> Result<void> {
      TRY(Dim size, dim(need.size()));
      out.needs.push_back({std::move(size), need.least(), need.up(), need.down()});
      return {};
    }));
    engine_.cuts.push_back(std::move(out));
    return {};
  }

  Result<void> check(const program::Check& item) {
    if (item.relation() > static_cast<std::uint8_t>(DimCheck::Relation::broadcast)) {
      return refuse("a check has relation number " + std::to_string(item.relation()) + ".");
    }
    DimCheck out;
    TRY(out.left, dim(item.left()));
    TRY(out.right, dim(item.right()));
    out.relation = static_cast<DimCheck::Relation>(item.relation());
    out.why = word(item.why());
    engine_.checks.push_back(std::move(out));
    return {};
  }

  const Registry& registry_;
  const std::shared_ptr<Buffer>& file_;
  std::uint64_t constants_offset_;
  std::uint64_t constants_size_;
  Engine engine_;
  std::set<std::string, std::less<>> declared_plugins_;
};

}  // namespace

Result<Engine> read_program(std::span<const std::byte> bytes, const std::shared_ptr<Buffer>& file,
                            std::uint64_t constants_offset, std::uint64_t constants_size, const Registry& registry) {
  const auto* first = reinterpret_cast<const std::uint8_t*>(bytes.data());
  flatbuffers::Verifier verifier(first, bytes.size(), max_verifier_depth, max_verifier_tables);
  if (bytes.size() < 8 || !program::VerifyProgramBuffer(verifier))
    return refuse("its tables do not lie inside the section.");
  return ProgramReader(registry, file, constants_offset, constants_size).read(*program::GetProgram(first));
}

}  // namespace polyphase
