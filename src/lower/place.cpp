// place: what lives inside what. Each proposal is tried, the rows around it are asked again, and it stays if they are
// no worse.
#include <algorithm>
#include <map>

#include "lower/draft.h"

namespace polyphase {
namespace {

class Placer {
 public:
  explicit Placer(Draft& draft) : draft_(draft) {}

  Result<void> run() {
    for (const int id : draft_.order()) {
      if (draft_.step(id).removed || !draft_.step(id).is_view) continue;
      if (draft_.step(id).op().name == "concat") {
        TRY_VOID(place_concat(id));
      } else {
        TRY_VOID(place_view(id));
      }
    }
    overwrite_inputs();
    return {};
  }

 private:
  // ------------------------------------------------------------ proposals

  std::set<std::string, std::less<>> born_in(const Shape& shape) const {
    std::map<std::string, DimRange, std::less<>> used;
    for (const Dim& dim : shape) dim.collect_symbols(used);
    std::set<std::string, std::less<>> out;
    for (const auto& [name, range] : used) {
      if (draft_.born.count(name) != 0) out.insert(name);
    }
    return out;
  }

  // A value may be written before the sizes of a larger one are born; then it cannot lie inside it.
  bool known_in_time(int value, int parent) const {
    const auto own = born_in(draft_.value(value).type.shape);
    const auto other = born_in(draft_.value(draft_.root_of(parent)).type.shape);
    return std::includes(own.begin(), own.end(), other.begin(), other.end());
  }

  // The order of the axes by the likely sizes of strides: what the layout must be if the view is one.
  std::optional<Layout> natural_layout(const std::vector<Dim>& strides) const {
    std::vector<std::pair<std::int64_t, std::uint8_t>> axes;
    for (std::size_t i = 0; i < strides.size(); ++i) {
      const auto stride = strides[i].evaluate(draft_.likely);
      if (!stride.has_value()) return std::nullopt;
      axes.emplace_back(-*stride, static_cast<std::uint8_t>(i));
    }
    std::stable_sort(axes.begin(), axes.end());
    std::vector<std::uint8_t> order;
    for (const auto& [stride, axis] : axes) order.push_back(axis);
    return Layout(std::move(order));
  }

  // Puts `value` into `parent`. False, and nothing changed, if strides cannot say it or a row around it would be worse.
  // A value that only looks at what its parent already holds may be relabelled; one that is written there keeps its
  // order of axes.
  bool propose(int value, int parent, View view, bool may_relabel) {
    if (!may_relabel && !known_in_time(value, parent)) return false;
    const Layout before = draft_.value(value).layout;
    draft_.put_into(value, parent, std::move(view));
    const std::vector<int> tree = draft_.tree_of(value);
    const bool expressible =
        std::all_of(tree.begin(), tree.end(), [&](int member) { return draft_.placement(member).has_value(); });
    if (expressible && may_relabel) relabel(value);
    std::map<int, std::vector<RowAnswer>> answers;
    if (expressible && rows_agree(tree, answers)) {
      for (auto& [id, rows] : answers) draft_.step(id).rows = std::move(rows);
      return true;
    }
    draft_.value(value).layout = before;
    draft_.take_out(value);
    return false;
  }

  // A view in another order of axes than its value was meant to have: it takes the order it has.
  void relabel(int value) {
    DraftValue& own = draft_.value(value);
    const auto place = draft_.placement(value);
    if (density_of(own.type.shape, own.layout, place->strides) != Density::strided) return;
    const auto natural = natural_layout(place->strides);
    if (natural.has_value() && density_of(own.type.shape, *natural, place->strides) != Density::strided)
      own.layout = *natural;
  }

  bool rows_agree(const std::vector<int>& tree, std::map<int, std::vector<RowAnswer>>& answers) const {
    constexpr double slack = 1.5;
    for (const int member : tree) {
      std::vector<int> around = draft_.value(member).readers;
      if (draft_.value(member).writer >= 0) around.push_back(draft_.value(member).writer);
      for (const int id : around) {
        const DraftStep& step = draft_.step(id);
        if (!step.settled() || answers.count(id) != 0) continue;
        std::vector<RowAnswer> rows = ask(draft_, step);
        if (rows.empty()) return false;
        const bool worse = rows.front().row->reference && !step.rows.front().row->reference;
        if (worse || rows.front().cost_seconds > step.rows.front().cost_seconds * slack) return false;
        answers.emplace(id, std::move(rows));
      }
    }
    return true;
  }

  // ------------------------------------------------------------ views

  static View view_of(const DraftStep& step) {
    View view;
    const Attributes& attributes = step.parts.front().attributes;
    if (step.op().name == "transpose") {
      view.kind = View::Kind::permute;
      view.order = attributes.get<std::vector<std::int64_t>>("order");
    } else if (step.op().name == "slice") {
      view.kind = View::Kind::window;
      view.start = attributes.get<std::vector<Dim>>("start");
      view.step = attributes.get<std::vector<std::int64_t>>("step");
    } else if (step.op().name == "expand") {
      view.kind = View::Kind::expand;
    }
    return view;
  }

  // An identity between layouts moves elements, unless only axes of one element change places.
  bool reorders(const DraftStep& step) const {
    const DraftValue& from = draft_.value(step.inputs.front());
    const DraftValue& to = draft_.value(step.outputs.front());
    if (step.op().name != "identity" || to.layout == from.layout) return false;
    const auto place = draft_.placement(step.inputs.front());
    return density_of(to.type.shape, to.layout, place->strides) == Density::strided;
  }

  // The result then holds the elements of the view's source, each once.
  static bool may_stand_in_result(const View& view) {
    return view.kind == View::Kind::same || view.kind == View::Kind::permute;
  }

  // How the source lies inside what was a view of it.
  static View inverse_of(const View& view) {
    View out;
    out.kind = view.kind;
    out.order.resize(view.order.size());
    for (std::size_t i = 0; i < view.order.size(); ++i)
      out.order[static_cast<std::size_t>(view.order[i])] = static_cast<std::int64_t>(i);
    return out;
  }

  Result<void> place_view(int id) {
    const DraftStep step = draft_.step(id);
    const int from = step.inputs.front();
    const int to = step.outputs.front();
    const View view = view_of(step);
    if (draft_.value(to).pinned) {
      // The place of the result is given: so what it is a view of moves there, if it may.
      const DraftValue& source = draft_.value(from);
      const bool free = source.parent < 0 && source.storage == Storage::arena && !source.pinned && source.writer >= 0 &&
                        draft_.step(source.writer).block == step.block;
      if (free && may_stand_in_result(view) && propose(from, to, inverse_of(view), false)) {
        draft_.remove_step(id);
        return {};
      }
      return copy_view(id, view);
    }
    if (!reorders(step) && propose(to, from, view, true)) {
      draft_.remove_step(id);
      return {};
    }
    return copy_view(id, view);
  }

  // The view cannot stand for the value: its elements are moved, by the operator's own kernel or by a copy from the
  // view.
  Result<void> copy_view(int id, const View& view) {
    const DraftStep step = draft_.step(id);
    const int from = step.inputs.front();
    const int to = step.outputs.front();
    if (step.op().name == "identity") {
      draft_.step(id).is_view = false;
      draft_.step(id).kind = StepKind::copy;
      return settle_step(draft_, id);
    }
    const std::vector<RowAnswer> own = ask(draft_, step);
    const int seen =
        draft_.add_value(draft_.value(from).name + ".view", draft_.value(to).type, draft_.value(to).layout);
    draft_.put_into(seen, from, view);
    if (draft_.placement(seen).has_value()) {
      relabel(seen);
      const int copy = draft_.add_copy(seen, to, step.block, id, step.name);
      const std::vector<RowAnswer> copied = ask(draft_, draft_.step(copy));
      CHECK(!copied.empty(), "identity has reference loops for every type");
      if (own.empty() || better(copied.front(), own.front())) {
        draft_.step(copy).rows = copied;
        draft_.remove_step(id);
        draft_.value(to).writer = copy;
        draft_.remark(step, "its elements are copied");
        return {};
      }
      draft_.remove_step(copy);
      draft_.value(to).writer = id;
    }
    draft_.take_out(seen);
    draft_.step(id).is_view = false;
    if (view.kind == View::Kind::same && (own.empty() || own.front().row->reference)) return reshape_a_copy(id);
    return settle_step(draft_, id);
  }

  static bool better(const RowAnswer& a, const RowAnswer& b) {
    if (a.row->reference != b.row->reference) return b.row->reference;
    return a.cost_seconds <= b.cost_seconds;
  }

  // A reshape of what does not lie in row-major order: put it in order, then look at it in the other shape.
  Result<void> reshape_a_copy(int id) {
    const DraftStep step = draft_.step(id);
    const int from = step.inputs.front();
    const int ordered = draft_.add_value(draft_.value(from).name + ".ordered", draft_.value(from).type, {});
    const int copy = draft_.add_copy(from, ordered, step.block, id, step.name);
    draft_.step(copy).rows = ask(draft_, draft_.step(copy));
    draft_.set_input(id, 0, ordered);
    draft_.remark(step, "its elements are copied");
    if (draft_.value(step.outputs.front()).pinned ? propose(ordered, step.outputs.front(), {}, false)
                                                  : propose(step.outputs.front(), ordered, {}, true)) {
      draft_.remove_step(id);
      return {};
    }
    return settle_step(draft_, id);
  }

  // ------------------------------------------------------------ concat

  // Operands are written straight into their windows of the result where their rows and readers take the pitch; the
  // others are copied there. The concat itself is no step.
  Result<void> place_concat(int id) {
    const DraftStep step = draft_.step(id);
    const int whole = step.outputs.front();
    const auto axis = static_cast<int>(step.parts.front().attributes.get<std::int64_t>("axis"));
    const int rank = draft_.value(whole).type.shape.rank();
    std::set<int> moved;
    Dim at = 0;
    int in_place = 0;
    for (const int part : step.inputs) {
      View window{View::Kind::window,
                  {},
                  std::vector<Dim>(static_cast<std::size_t>(rank), Dim(0)),
                  std::vector<std::int64_t>(static_cast<std::size_t>(rank), 1)};
      window.start[static_cast<std::size_t>(axis)] = at;
      at += draft_.value(part).type.shape[axis];
      const DraftValue& own = draft_.value(part);
      const bool free = own.parent < 0 && own.storage == Storage::arena && !own.pinned && moved.insert(part).second &&
                        own.layout == draft_.value(whole).layout && (own.writer >= 0 || !own.children.empty());
      if (free && written_in(part, step.block) && propose_part(part, whole, window, axis)) {
        ++in_place;
        continue;
      }
      copy_part(id, part, whole, window);
    }
    draft_.remove_step(id);
    draft_.remark(
        step, std::to_string(in_place) + " of " + std::to_string(step.inputs.size()) + " operands written in place");
    return {};
  }

  // Beside the concat's axis all operands have one size, by proof or by a check of the run; so the operand may be
  // written with the whole's sizes, which show that its rows do not overlap in the window.
  bool propose_part(int part, int whole, const View& window, int axis) {
    if (!known_in_time(part, whole)) return false;
    const Shape before = draft_.value(part).type.shape;
    for (int i = 0; i < before.rank(); ++i) {
      if (i != axis) draft_.value(part).type.shape[i] = draft_.value(whole).type.shape[i];
    }
    if (propose(part, whole, window, false)) return true;
    draft_.value(part).type.shape = before;
    return false;
  }

  // Whether all writers of the value and of what lives in it are in this block: a branch not taken writes nothing.
  bool written_in(int value, int block) const {
    for (const int member : draft_.tree_of(value)) {
      const int writer = draft_.value(member).writer;
      if (writer >= 0 && draft_.step(writer).block != block) return false;
    }
    return true;
  }

  void copy_part(int concat, int part, int whole, View window) {
    const int place =
        draft_.add_value(draft_.value(part).name + ".window", draft_.value(part).type, draft_.value(whole).layout);
    draft_.put_into(place, whole, std::move(window));
    const int copy = draft_.add_copy(part, place, draft_.step(concat).block, concat, draft_.step(concat).name);
    draft_.step(copy).rows = ask(draft_, draft_.step(copy));
    CHECK(draft_.step(copy).settled(), "identity has reference loops for every type");
  }

  // ------------------------------------------------------------ overwriting

  void overwrite_inputs() {
    position_.assign(draft_.steps.size(), -1);
    const std::vector<int> order = draft_.order();
    for (std::size_t i = 0; i < order.size(); ++i) position_[static_cast<std::size_t>(order[i])] = static_cast<int>(i);
    for (const int id : order) {
      const DraftStep& step = draft_.step(id);
      if (step.settled() && step.outputs.size() == 1 && may_overwrite(step)) overwrite_one(id);
    }
  }

  static bool may_overwrite(const DraftStep& step) {
    return std::all_of(step.rows.begin(), step.rows.end(), [&](const RowAnswer& answer) {
      return answer.row->in_place || (answer.row->reference && step.bare() && step.op().elementwise);
    });
  }

  // Read by elementwise parts only: never the data of a convolution.
  static bool read_elementwise(const DraftStep& step, std::size_t operand) {
    for (const Part& part : step.parts) {
      const bool reads =
          std::find(part.operands.begin(), part.operands.end(), static_cast<int>(operand)) != part.operands.end();
      if (reads && !part.op->elementwise) return false;
    }
    return true;
  }

  void overwrite_one(int id) {
    const DraftStep step = draft_.step(id);
    const int result = step.outputs.front();
    if (draft_.value(result).parent >= 0 || draft_.value(result).storage != Storage::arena ||
        draft_.value(result).pinned)
      return;
    for (std::size_t i = 0; i < step.inputs.size(); ++i) {
      const int input = step.inputs[i];
      if (input < 0 || !read_elementwise(step, i) || !dies_in(id, input) || !lies_alike(input, result)) continue;
      if (propose(result, input, {}, false)) return;
    }
  }

  bool lies_alike(int input, int result) const {
    const DraftValue& a = draft_.value(input);
    const DraftValue& b = draft_.value(result);
    const auto place = draft_.placement(input);
    return a.type == b.type && a.layout == b.layout &&
           density_of(a.type.shape, a.layout, place->strides) == Density::dense;
  }

  // Nothing of the memory is read or written after the step, nor read by it in any other way.
  bool dies_in(int id, int input) const {
    const int root = draft_.root_of(input);
    if (draft_.value(root).storage != Storage::arena || draft_.value(root).pinned) return false;
    const int here = position_[static_cast<std::size_t>(id)];
    for (const int member : draft_.tree_of(root)) {
      const DraftValue& value = draft_.value(member);
      if (value.pinned || value.kept) return false;
      if (value.writer >= 0 && position_[static_cast<std::size_t>(value.writer)] >= here) return false;
      for (const int reader : value.readers) {
        if (position_[static_cast<std::size_t>(reader)] > here || (reader == id && member != input)) return false;
      }
    }
    return true;
  }

  Draft& draft_;
  std::vector<int> position_;  // of steps, in the order of running
};

}  // namespace

Result<void> place(Draft& draft) { return Placer(draft).run(); }

}  // namespace polyphase
