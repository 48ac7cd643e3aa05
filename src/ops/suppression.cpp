// non_max_suppression: of boxes that overlap much, the one with the best score.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/dense.h"
#include "ops/families.h"
#include "ops/rules.h"

namespace polyphase {
namespace {

Result<std::vector<Type>> infer_suppression(const InferContext& context) {
  TRY_VOID(expect_dtype(context, 0, DTypeSet::floats));
  TRY_VOID(expect_same_dtype(context, 0, 1));
  const Shape& boxes = context.shape(0);
  const Shape& scores = context.shape(1);
  if (boxes.rank() != 3 || scores.rank() != 3) {
    return refuse(context, "'boxes' must be [images, boxes, 4] and 'scores' [images, classes, boxes], found " +
                               boxes.text() + " and " + scores.text() + ".");
  }
  TRY_VOID(expect_equal(context, boxes[2], "axis 2 of 'boxes'", 4, "the numbers of a box"));
  TRY(const Dim images, expect_equal(context, boxes[0], "axis 0 of 'boxes'", scores[0], "axis 0 of 'scores'"));
  TRY(const Dim count, expect_equal(context, boxes[1], "axis 1 of 'boxes'", scores[2], "axis 2 of 'scores'"));
  for (const std::size_t i : {2, 3}) {
    if (context.has_input(i) && !(context.shape(i).rank() == 0 && is_float(context.input(i).dtype)))
      return refuse(context, "operand " + operand_name(context, i) + " must be one float of rank 0, found " +
                                 context.input(i).text() + ".");
  }
  const Dim& most = context.attributes().get<Dim>("most");
  TRY_VOID(context.require(0, DimCheck::Relation::less_equal, most,
                           "non_max_suppression: 'most' must not be negative, found " + most.text() + "."));
  return std::vector<Type>{{DType::i64, Shape{images * scores[1] * min(most, count), Dim(3)}}, {DType::i64, Shape{}}};
}

struct Box {
  double low[2];
  double high[2];
  double area() const { return (high[0] - low[0]) * (high[1] - low[1]); }
};

// Any two opposite corners, or the centre and the size (x, y, width, height).
Box box_of(const double* numbers, bool centre) {
  Box out{};
  for (int i = 0; i < 2; ++i) {
    const double a = centre ? numbers[i] - numbers[i + 2] / 2 : numbers[i];
    const double b = centre ? numbers[i] + numbers[i + 2] / 2 : numbers[i + 2];
    out.low[i] = std::min(a, b);
    out.high[i] = std::max(a, b);
  }
  return out;
}

// The intersection over the union, as f32.
double overlap(const Box& a, const Box& b) {
  double common = 1;
  for (int i = 0; i < 2; ++i) common *= std::max(0.0, std::min(a.high[i], b.high[i]) - std::max(a.low[i], b.low[i]));
  if (a.area() <= 0 || b.area() <= 0 || common <= 0) return 0;
  return static_cast<double>(static_cast<float>(common / (a.area() + b.area() - common)));
}

double scalar_or(const ReferenceContext& context, std::size_t i, double otherwise) {
  return context.has_input(i) ? load_double(context.inputs[i].data, context.inputs[i].dtype) : otherwise;
}

Result<void> reference_suppression(const ReferenceContext& context) {
  const std::vector<double> boxes = dense_values<double>(context.inputs[0]);
  const std::vector<double> scores = dense_values<double>(context.inputs[1]);
  const double most_overlap = scalar_or(context, 2, 0);
  const double least_score = scalar_or(context, 3, -INFINITY);
  const bool centre = context.attributes.get<bool>("centre");
  const TensorView& shape = context.inputs[1];
  const std::int64_t classes = shape.sizes[1];
  const std::int64_t count = shape.sizes[2];
  const auto most = static_cast<std::size_t>(std::min(context.attributes.get<Dim>("most").value(), count));
  std::vector<std::int64_t> rows;
  std::vector<std::int64_t> order;
  for (std::int64_t list = 0; list < shape.sizes[0] * classes; ++list) {
    const double* score = scores.data() + list * count;
    const double* box = boxes.data() + list / classes * count * 4;
    order.clear();
    for (std::int64_t i = 0; i < count; ++i) {
      if (score[i] > least_score || least_score == -INFINITY) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) { return score[a] > score[b]; });
    std::vector<Box> kept;
    for (const std::int64_t i : order) {
      if (kept.size() >= most) break;
      const Box candidate = box_of(box + i * 4, centre);
      const auto hides = [&](const Box& other) { return overlap(candidate, other) > most_overlap; };
      if (std::any_of(kept.begin(), kept.end(), hides)) continue;
      kept.push_back(candidate);
      rows.insert(rows.end(), {list / classes, list % classes, i});
    }
  }
  *context.outputs[1].as<std::int64_t>() = static_cast<std::int64_t>(rows.size() / 3);
  const TensorView& y = context.outputs[0];
  rows.resize(static_cast<std::size_t>(y.element_count()), 0);
  store_values(rows, y);
  return {};
}

}  // namespace

std::vector<OpDef> suppression_operators() {
  return {
      OpDef{.name = "non_max_suppression",
            .doc = "Per image and class, boxes from the best score down; one that overlaps a chosen one by more than "
                   "the limit (intersection over union, rounded to f32) is left out. Of equal scores the least "
                   "index comes first. Source: ONNX operator NonMaxSuppression.",
            .inputs = {{"boxes", "[images, boxes, 4], float"},
                       {"scores", "[images, classes, boxes], the dtype of boxes"},
                       {"most_overlap", "a float scalar; absent: 0", true},
                       {"least_score", "a float scalar: only greater scores count; absent: all do", true}},
            .outputs = {{"chosen",
                         "i64, [images * classes * min(most, boxes), 3]: image, class, box; rows from "
                         "`count` on are 0"},
                        {"count", "i64, a scalar: how many were chosen"}},
            .attributes = {{"most", AttributeKind::dim, "how many boxes per image and class at most"},
                           {"centre", AttributeKind::boolean,
                            "a box is its centre and size (x, y, width, height), else two corners", Attribute(false)}},
            .infer = infer_suppression,
            .reference = reference_suppression,
            .one_dtype = 0b11}};
}

}  // namespace polyphase
