// RoiAlign, MaxRoiPool, NonMaxSuppression, Unique, Det: what detectors put behind their networks, and its kin.
#include "import/onnx/node_context.h"

namespace polyphase {
namespace {

Result<Values> convert_roi_align(NodeContext& node) {
  // Before opset 16 there was one transformation only.
  const std::string transformation =
      node.version() < 16 ? "output_half_pixel" : node.word("coordinate_transformation_mode", "half_pixel");
  if (transformation != "half_pixel" && transformation != "output_half_pixel")
    return broken_rule("coordinate_transformation_mode is '" + transformation.substr(0, 40) +
                       "'; it must be half_pixel or output_half_pixel.");
  const std::string mode = node.word("mode", "avg");
  if (mode != "avg" && mode != "max")
    return broken_rule("mode is '" + mode.substr(0, 40) + "'; it must be avg or max.");
  return single(node.emit("roi_align",
                          Attributes({{"height", node.integer("output_height", 1)},
                                      {"width", node.integer("output_width", 1)},
                                      {"samples", node.integer("sampling_ratio", 0)},
                                      {"scale", node.real("spatial_scale", 1)},
                                      {"half_pixel", transformation == "half_pixel"},
                                      {"mode", mode}}),
                          node.inputs()));
}

Result<Values> convert_max_roi_pool(NodeContext& node) {
  const auto shape = node.integers("pooled_shape");
  if (!shape.has_value() || shape->size() != 2)
    return broken_rule("attribute 'pooled_shape' must be there, with two entries.");
  return single(
      node.emit("roi_max_pool",
                Attributes({{"height", (*shape)[0]}, {"width", (*shape)[1]}, {"scale", node.real("spatial_scale", 1)}}),
                node.inputs()));
}

// A threshold as a scalar of the boxes' type; null if absent.
Result<Value*> threshold(NodeContext& node, std::size_t i) {
  if (!node.has(i)) return static_cast<Value*>(nullptr);
  if (!(node.shape(i).element_count() == 1) || node.rank(i) > 1)
    return broken_rule("operand " + std::to_string(i) + " must be one number, found " + node.type(i).text() + ".");
  return node.emit("reshape", Attributes({{"shape", std::vector<Dim>{}}}), {node.input(i)});
}

Result<Values> convert_suppression(NodeContext& node) {
  Dim most(0);
  if (node.has(2)) {
    TRY(most, node.size(2, "max_output_boxes_per_class", {-(INT64_C(1) << 40), INT64_C(1) << 40}));
  }
  const bool centre = node.flag("center_point_box", false);
  TRY(Value * overlap, threshold(node, 3));
  TRY(Value * score, threshold(node, 4));
  TRY(const Values found,
      node.emit_all("non_max_suppression", Attributes({{"most", max(Dim(0), most)}, {"centre", centre}}),
                    {node.input(0), node.input(1), overlap, score}));
  const DimRange range{0, found[0]->type.shape[0].range().high};
  TRY(const std::vector<Dim> count, node.sizes_of(found[1], "the number of chosen boxes", range));
  return single(node.emit("slice",
                          Attributes({{"start", std::vector<Dim>{Dim(0), Dim(0)}},
                                      {"size", std::vector<Dim>{count.front(), Dim(3)}},
                                      {"step", std::vector<std::int64_t>{1, 1}}}),
                          {found[0]}));
}

Result<Values> convert_unique(NodeContext& node) {
  std::int64_t axis = -1;
  if (node.has_attribute("axis")) {
    TRY(axis, node.axis(node.integer("axis", 0), node.rank(0)));
  }
  const bool sorted = node.flag("sorted", true);
  TRY(Value * found, node.emit("count_unique", Attributes({{"axis", axis}}), {node.input(0)}));
  TRY(const std::vector<Dim> count,
      node.sizes_of(found, "the number of different elements", {0, node.shape(0).element_count().range().high}));
  return node.emit_all("unique", Attributes({{"axis", axis}, {"count", count.front()}, {"sorted", sorted}}),
                       {node.input(0)});
}

Result<Values> convert_det(NodeContext& node) { return single(node.emit("det", {}, {node.input(0)})); }

}  // namespace

std::vector<Converter> detection_converters() {
  return {
      {"Det", {11, 22}, 1, 1, convert_det},
      {"MaxRoiPool", {1, 22}, 2, 2, convert_max_roi_pool},
      {"NonMaxSuppression", {10, 11}, 2, 5, convert_suppression},
      {"RoiAlign", {10, 16, 22}, 3, 3, convert_roi_align},
      {"Unique", {11, 28}, 1, 1, convert_unique},
  };
}

}  // namespace polyphase
