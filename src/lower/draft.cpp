// The draft's edits, which keep readers, writers and views exact.
#include "lower/draft.h"

#include <algorithm>

namespace polyphase {

int Draft::add_value(std::string name, Type type, Layout layout) {
  DraftValue added;
  added.name = std::move(name);
  added.layout = layout.is_set() ? std::move(layout) : Layout::row_major(type.shape.rank());
  added.type = std::move(type);
  values.push_back(std::move(added));
  return static_cast<int>(values.size()) - 1;
}

namespace {

void enter_reader(DraftValue& value, int step) {
  if (std::find(value.readers.begin(), value.readers.end(), step) == value.readers.end()) value.readers.push_back(step);
}

}  // namespace

int Draft::add_step(DraftStep added, int before) {
  const int id = static_cast<int>(steps.size());
  for (const int input : added.inputs) {
    if (input >= 0) enter_reader(value(input), id);
  }
  for (const int output : added.outputs) value(output).writer = id;
  std::vector<int>& list = blocks[static_cast<std::size_t>(added.block)].steps;
  list.insert(before < 0 ? list.end() : std::find(list.begin(), list.end(), before), id);
  steps.push_back(std::move(added));
  return id;
}

int Draft::add_copy(int from, int to, int block, int before, const std::string& name) {
  DraftStep copy;
  copy.kind = StepKind::copy;
  copy.name = name;
  const OpDef& identity = registry.at("identity");
  copy.parts.push_back({&identity, identity.complete({}).value(), {0}});
  copy.inputs = {from};
  copy.outputs = {to};
  copy.block = block;
  return add_step(std::move(copy), before);
}

void Draft::remove_step(int id) {
  DraftStep& gone = step(id);
  for (const int input : gone.inputs) {
    if (input >= 0) std::erase(value(input).readers, id);
  }
  for (const int output : gone.outputs) {
    if (value(output).writer == id) value(output).writer = -1;
  }
  std::erase(blocks[static_cast<std::size_t>(gone.block)].steps, id);
  gone.removed = true;
}

void Draft::set_input(int id, std::size_t i, int to) {
  DraftStep& user = step(id);
  const int from = user.inputs[i];
  user.inputs[i] = to;
  if (std::find(user.inputs.begin(), user.inputs.end(), from) == user.inputs.end()) std::erase(value(from).readers, id);
  enter_reader(value(to), id);
}

void Draft::set_output(int id, std::size_t i, int to) {
  value(step(id).outputs[i]).writer = -1;
  step(id).outputs[i] = to;
  value(to).writer = id;
}

void Draft::put_into(int id, int parent, View view) {
  value(id).parent = parent;
  value(id).view = std::move(view);
  value(parent).children.push_back(id);
}

void Draft::take_out(int id) {
  std::erase(value(value(id).parent).children, id);
  value(id).parent = -1;
}

int Draft::root_of(int id) const {
  while (value(id).parent >= 0) id = value(id).parent;
  return id;
}

std::vector<int> Draft::tree_of(int id) const {
  std::vector<int> out{id};
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::vector<int>& children = value(out[i]).children;
    out.insert(out.end(), children.begin(), children.end());
  }
  return out;
}

std::optional<Placement> Draft::placement(int id) const {
  const DraftValue& own = value(id);
  if (own.parent < 0) return Placement{0, own.layout.dense_strides(own.type.shape.dims())};
  const auto parent = placement(own.parent);
  if (!parent.has_value()) return std::nullopt;
  auto place = apply(own.view, value(own.parent).type.shape, *parent, own.type.shape);
  if (!place.has_value()) return place;
  // The stride of an axis of one element leads nowhere; rows shall find the one that its layout gives it.
  const std::vector<Dim> dense = own.layout.dense_strides(own.type.shape.dims());
  for (std::size_t axis = 0; axis < dense.size(); ++axis) {
    if (own.type.shape[static_cast<int>(axis)] == 1) place->strides[axis] = dense[axis];
  }
  return place;
}

OperandDesc Draft::operand(int id, TensorView* constant_view) const {
  if (id < 0) return {.present = false, .type = {}, .layout = {}};
  const DraftValue& own = value(id);
  const DraftValue& root = value(root_of(id));
  const auto place = placement(id);
  CHECK(place.has_value(), "a view that cannot be expressed is never kept");
  OperandDesc out{.present = true, .type = own.type, .layout = own.layout};
  out.density = density_of(own.type.shape, own.layout, place->strides);
  if (root.storage != Storage::constant) return out;
  const auto sizes = own.type.shape.evaluate({});
  const auto strides = Shape(place->strides).evaluate({});
  const auto offset = place->offset.evaluate({});
  // A view that depends on sizes has elements only when it runs.
  out.constant = sizes.has_value() && strides.has_value() && offset.has_value();
  if (!out.constant) return out;
  TensorDesc desc = TensorDesc::row_major(own.type.dtype, *sizes);
  std::copy(strides->begin(), strides->end(), desc.strides.begin());
  *constant_view =
      TensorView(desc, root.constant.view().data + *offset * static_cast<std::int64_t>(size_bytes(desc.dtype)));
  out.value = constant_view;
  return out;
}

std::vector<int> Draft::order() const {
  std::vector<int> out;
  const auto append = [&](const auto& self, std::size_t block) -> void {
    for (const int id : blocks[block].steps) {
      out.push_back(id);
      for (const int nested : step(id).blocks) self(self, static_cast<std::size_t>(nested));
    }
  };
  append(append, 0);
  return out;
}

void Draft::remark(const DraftStep& about, std::string_view what) {
  remarks.push_back((about.name.empty() ? about.op().name : about.name) + ": " + std::string(what));
}

}  // namespace polyphase
