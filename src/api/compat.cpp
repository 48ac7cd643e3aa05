// compat: each distinct operator configuration of a model, tested alone.
#include "api/compat.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <set>

namespace polyphase::api {
namespace {

// Nodes that are alike, and what is said of them.
struct Configuration {
  CompatRow row;
  const Node* node = nullptr;   // the first of them
  const Node* owner = nullptr;  // the node of the main graph in whose regions it stands; null: it is of the main graph
  std::vector<bool> constant;   // operand by operand
};

std::string operation_of(const Node& node) {
  std::string out;
  for (const Part& part : node.parts()) out += (out.empty() ? "" : " + ") + part.op->name;
  return out;
}

std::string attributes_of(const Node& node) {
  std::string out;
  for (const Part& part : node.parts()) {
    const std::string text = print_attributes(part.attributes, &part.op->attributes);
    if (!text.empty()) out += (out.empty() ? "" : " ") + text;
  }
  return out;
}

class Configurations {
 public:
  Configurations(const Graph& graph, std::string_view only) : only_(only), dependent_(dependent_values(graph)) {
    collect(graph, nullptr);
  }
  std::vector<Configuration> take() { return std::move(found_); }
  // Nodes that read sizes from data.
  const std::vector<const Node*>& binds() const { return binds_; }
  std::int64_t constant_nodes() const { return constant_nodes_; }
  const std::set<std::string>& operations() const { return operations_; }

 private:
  void collect(const Graph& graph, const Node* owner) {
    for (const auto& node : graph.nodes()) {
      if (node->anchors("bind")) {
        binds_.push_back(node.get());
      } else if (!node->is("constant") && !node->is("dims")) {
        add(*node, owner);
      }
      for (const auto& region : node->regions()) collect(*region, owner == nullptr ? node.get() : owner);
    }
  }

  void add(const Node& node, const Node* owner) {
    const bool computes = std::any_of(node.outputs().begin(), node.outputs().end(),
                                      [&](const auto& output) { return dependent_.at(output.get()); });
    if (!computes) {
      ++constant_nodes_;
      return;
    }
    operations_.insert(operation_of(node));
    if (!only_.empty() && operation_of(node) != only_) return;
    Configuration made{{}, &node, owner, {}};
    made.row.operation = operation_of(node);
    made.row.attributes = attributes_of(node);
    made.row.first_node = node.name();
    std::string key = made.row.operation + " " + made.row.attributes;
    for (const polyphase::Value* input : node.inputs()) {
      const bool constant = input != nullptr && !dependent_.at(input);
      made.constant.push_back(constant);
      if (input == nullptr) {
        made.row.operands.push_back({.present = false, .sizes = {}});
        key += "; -";
        continue;
      }
      made.row.operands.push_back({true, input->type.dtype, sizes_text(input->type.shape), constant});
      key += "; " + input->type.text() + (constant ? " constant" : "");
      if (!input->contents.has_value()) continue;
      for (const Dim& dim : *input->contents) key += " " + dim.text();
    }
    for (const auto& region : node.regions()) key += "\n" + print(*region, {.max_constant_elements = 64});
    const auto [place, fresh] = by_key_.emplace(std::move(key), found_.size());
    if (fresh) found_.push_back(std::move(made));
    ++found_[place->second].row.nodes;
  }

  std::string_view only_;
  std::unordered_map<const polyphase::Value*, bool> dependent_;
  std::map<std::string, std::size_t> by_key_;
  std::vector<Configuration> found_;
  std::vector<const Node*> binds_;
  std::set<std::string> operations_;
  std::int64_t constant_nodes_ = 0;
};

void add_missing(const OperatorSurvey& survey, std::string_view only, std::vector<CompatRow>& rows) {
  for (const auto& [key, use] : survey.uses()) {
    const std::string name = key.first.empty() ? key.second : key.first + "." + key.second;
    if (!only.empty() && name != only && key.second != only) continue;
    CompatRow row;
    row.operation = name;
    if (use.is_missing) {
      row.nodes = use.nodes_refused;
      row.first_node = use.first_node;
      row.outcome = CompatOutcome::missing;
      row.reason = "Polyphase does not have the operator. " + use.advice;
      rows.push_back(std::move(row));
      continue;
    }
    for (const OperatorProblem& problem : use.problems) {
      row.nodes = problem.nodes;
      row.first_node = problem.error.node;
      row.outcome = CompatOutcome::refused;
      row.reason = problem.error.message + (problem.error.hint.empty() ? "" : " " + problem.error.hint);
      rows.push_back(row);
    }
  }
}

int badness(CompatOutcome outcome) {
  switch (outcome) {
    case CompatOutcome::wrong:
      return 4;
    case CompatOutcome::missing:
      return 3;
    case CompatOutcome::refused:
      return 2;
    case CompatOutcome::right:
      return 1;
    case CompatOutcome::not_run:
      break;
  }
  return 0;
}

// A row is as bad as its worst case; cases that could not be run do not hide those that could.
void finish(CompatRow& row) {
  for (const CompatCase& one : row.cases) {
    if (!row.reason.empty() && badness(one.outcome) <= badness(row.outcome)) continue;
    if (badness(one.outcome) < badness(row.outcome)) continue;
    row.outcome = one.outcome;
    row.reason = one.reason;
  }
}

class Compat {
 public:
  Compat(ImportedModel model, std::shared_ptr<const Workshop> workshop, const CompileOptions& compile,
         const CompatOptions& options)
      : model_(std::move(model)), workshop_(std::move(workshop)), compile_(compile), options_(options) {}

  Result<void> run(CompatReport& report) {
    Configurations all(*model_.graph, options_.only);
    report.constant_nodes = all.constant_nodes();
    found_ = all.take();
    binds_ = all.binds();
    if (found_.empty() && report.rows.empty() && !options_.only.empty()) return refuse_only(all.operations());
    if (!found_.empty()) TRY_VOID(test(report));
    for (Configuration& configuration : found_) {
      finish(configuration.row);
      report.rows.push_back(std::move(configuration.row));
    }
    return {};
  }

 private:
  Error refuse_only(const std::set<std::string>& operations) const {
    std::string known;
    for (const std::string& name : operations) known += (known.empty() ? "" : ", ") + name;
    return {ErrorCode::invalid_argument, "the model has no operator '" + options_.only + "'.", "It has " + known + "."};
  }

  // Operands of the nodes that are tested in the main graph, and of those in whose regions others are.
  std::vector<const polyphase::Value*> wanted() const {
    std::vector<const polyphase::Value*> out;
    std::set<const polyphase::Value*> main;
    for (const auto& node : model_.graph->nodes()) {
      for (const auto& output : node->outputs()) main.insert(output.get());
    }
    const auto want = [&](const Node& node) {
      for (const polyphase::Value* input : node.inputs()) {
        if (main.erase(input) != 0) out.push_back(input);
      }
    };
    for (const Configuration& configuration : found_)
      want(configuration.owner == nullptr ? *configuration.node : *configuration.owner);
    for (const Node* bind : binds_) want(*bind);
    return out;
  }

  Result<void> test(CompatReport& report) {
    tell("import", 0.02);
    TRY(const Flow flow, Flow::create(*model_.graph, wanted(), workshop_, compile_, options_, report.notes));
    TRY(const std::vector<OpenSizes> sets, flow.size_sets(report.notes));
    std::vector<Trial> trials(found_.size(), Trial(workshop_, compile_, options_));
    const auto places = places_of(*model_.graph);
    double done = 0;
    for (const OpenSizes& sizes : sets) {
      TRY(Flow::Seen seen, flow.run(sizes));
      std::map<const Node*, Captures> inner;
      for (std::size_t i = 0; i < found_.size(); ++i) {
        Configuration& configuration = found_[i];
        if (compile_.cancelled != nullptr && *compile_.cancelled)
          return Error{ErrorCode::cancelled, "the tests were cancelled.", "Run them again."};
        tell(configuration.row.operation, 0.05 + 0.95 * done++ / static_cast<double>(sets.size() * found_.size()));
        CompatCase& one = configuration.row.cases.emplace_back();
        one.sizes.insert(sizes.begin(), sizes.end());
        if (configuration.owner == nullptr) {
          run_case(configuration, seen, {}, places, trials[i], one);
        } else {
          if (inner.count(configuration.owner) == 0)
            inner[configuration.owner] = look_inside(*configuration.owner, seen);
          run_case(configuration, seen, inner[configuration.owner], places, trials[i], one);
        }
      }
    }
    return {};
  }

  void tell(std::string_view stage, double done) const {
    if (compile_.progress) compile_.progress(stage, done);
  }

  // An operand that has come to nothing would let every kernel pass.
  polyphase::Tensor alive(const polyphase::Tensor& tensor) const {
    const polyphase::TensorView& view = tensor.view();
    if (!is_float(view.dtype) || view.element_count() < 2) return tensor;
    bool zero = true;
    for_each_index<1>(view.size_span(), {view.strides.data()}, [&](const std::array<std::int64_t, 1>& at) {
      zero =
          zero && load_double(view.data + at[0] * static_cast<std::int64_t>(size_bytes(view.dtype)), view.dtype) == 0;
    });
    if (!zero) return tensor;
    auto filled = polyphase::Tensor::allocate(view.dtype, view.size_span());
    if (!filled.ok()) return tensor;
    std::mt19937 random(static_cast<std::mt19937::result_type>(options_.seed));
    std::uniform_real_distribution<double> real(0.25, 1.0);  // any logarithm, root and divisor takes that
    const std::int64_t count = view.element_count();
    for (std::int64_t i = 0; i < count; ++i)
      store_double(filled->view().data + i * static_cast<std::int64_t>(size_bytes(view.dtype)), view.dtype,
                   real(random));
    return *filled;
  }

  using Places = std::unordered_map<const polyphase::Value*, Place>;

  void run_case(const Configuration& configuration, const Flow::Seen& seen, const Captures& inner, const Places& places,
                Trial& trial, CompatCase& result) const {
    DimBindings bindings = seen.bindings;
    const auto known = [&](const polyphase::Value* value) -> const polyphase::Tensor* {
      if (const auto found = seen.tensors.find(value); found != seen.tensors.end()) return &found->second;
      const auto held = inner.find(places.at(value));
      return held == inner.end() ? nullptr : &held->second.tensor;
    };
    for (const Node* bind : binds_) {
      const polyphase::Tensor* data = known(bind->input(0));
      if (data != nullptr) learn_data(*bind, *data, bindings);
    }
    for (const auto& [value, place] : places) {
      const auto held = inner.find(place);
      if (held != inner.end()) learn_sizes(value->type.shape, held->second.tensor.sizes(), bindings);
    }
    NodeUse use{configuration.node, {}, configuration.constant, &bindings};
    for (std::size_t i = 0; i < configuration.node->inputs().size(); ++i) {
      const polyphase::Value* input = configuration.node->inputs()[i];
      polyphase::Tensor& tensor = use.operands.emplace_back();
      if (input == nullptr) continue;
      if (const polyphase::Tensor* constant = constant_of(*input); constant != nullptr) {
        tensor = *constant;
      } else if (const polyphase::Tensor* flowing = known(input); flowing != nullptr) {
        tensor = use.constant[i] ? *flowing : alive(*flowing);
      } else if (!input->contents.has_value()) {
        result.reason = configuration.owner != nullptr && seen.failure.empty()
                            ? "it stands in a branch or a loop that did not run with these inputs."
                            : "what flows into it is not known: " + seen.failure;
        return;
      }
    }
    trial.run(use, result);
  }

  static void learn_data(const Node& bind, const polyphase::Tensor& data, DimBindings& bindings) {
    const auto& symbols = bind.attributes().get<std::vector<Dim>>("symbols");
    const polyphase::TensorView& view = data.view();
    for (std::size_t i = 0; i < symbols.size(); ++i) {
      const std::int64_t at = view.rank == 0 ? 0 : static_cast<std::int64_t>(i) * view.strides[0];
      if (symbols[i].is_symbol())
        bindings[symbols[i].symbol_name()] =
            load_integer(view.data + at * static_cast<std::int64_t>(size_bytes(view.dtype)), view.dtype);
    }
  }

  static const polyphase::Tensor* constant_of(const polyphase::Value& value) {
    if (value.producer == nullptr) return nullptr;
    const polyphase::Tensor* constant = value.producer->constant();
    return constant != nullptr ? constant : value.producer->weight();
  }

  // What flows inside a node's regions, in the last trip of a loop, by the interpreter.
  Captures look_inside(const Node& owner, const Flow::Seen& seen) {
    Captures out;
    NodeUse use{&owner, {}, {}, &seen.bindings};
    for (const polyphase::Value* input : owner.inputs()) {
      use.constant.push_back(false);
      polyphase::Tensor& tensor = use.operands.emplace_back();
      if (input == nullptr) continue;
      const auto found = seen.tensors.find(input);
      if (found != seen.tensors.end()) {
        tensor = found->second;
      } else if (const polyphase::Tensor* constant = constant_of(*input); constant != nullptr) {
        tensor = *constant;
      } else if (!input->contents.has_value()) {
        return out;
      }
    }
    const auto cut = cut_node(use, workshop_->registry(), true);
    if (!cut.ok()) return out;
    std::vector<polyphase::Tensor> inputs;
    for (const std::size_t i : cut->inputs) inputs.push_back(use.operands[i]);
    const auto places = places_of(*cut->graph);
    // What came before a failure is of use as well.
    static_cast<void>(
        interpret(*cut->graph, inputs, [&](const polyphase::Value& value, const polyphase::Tensor& seen_tensor) {
          out[places.at(&value)] = {seen_tensor, -1, ""};
        }));
    return out;
  }

  const ImportedModel model_;
  std::shared_ptr<const Workshop> workshop_;
  const CompileOptions& compile_;
  const CompatOptions& options_;
  std::vector<Configuration> found_;
  std::vector<const Node*> binds_;
};

Result<CompatReport> timed_compat(const ModelSource& source, const CompileOptions& compile,
                                  const CompatOptions& options) {
  return without_throwing([&]() -> Result<CompatReport> {
    const auto start = std::chrono::steady_clock::now();
    if (compile.progress) compile.progress("import", 0);
    TRY(auto workshop, workshop_of(compile.plugins));
    OperatorSurvey survey;
    TRY(ImportedModel model, import_source(source, compile, *workshop, &survey));
    CompatReport report;
    report.model_name = model.name;
    report.producer = model.producer;
    report.notes = model.warnings;
    add_missing(survey, options.only, report.rows);
    if (!model.complete)
      report.notes.emplace_back("What reads the results of missing or refused operators was not looked at.");
    TRY_VOID(Compat(std::move(model), std::move(workshop), compile, options).run(report));
    report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return report;
  });
}

}  // namespace

std::string_view name_of(CompatOutcome outcome) {
  constexpr std::string_view names[] = {"right", "wrong", "refused", "missing", "not run"};
  return names[static_cast<std::size_t>(outcome)];
}

std::int64_t CompatReport::count(CompatOutcome outcome) const {
  return std::count_if(rows.begin(), rows.end(), [&](const CompatRow& row) { return row.outcome == outcome; });
}

bool CompatReport::ok() const {
  const auto done = count(CompatOutcome::right);
  return done + count(CompatOutcome::not_run) == static_cast<std::int64_t>(rows.size()) && (done > 0 || rows.empty());
}

Result<CompatReport> compat(const std::string& path, const CompileOptions& compile, const CompatOptions& options) {
  return timed_compat(path, compile, options);
}

Result<CompatReport> compat_bytes(std::span<const std::byte> bytes, const CompileOptions& compile,
                                  const CompatOptions& options) {
  return timed_compat(bytes, compile, options);
}

}  // namespace polyphase::api
