// A method for every operator: written by polyphase_network_layers from the definitions in src/ops; a test compares.
// Settings are given by name: network.softmax(x, {.axis = 1}, "attend"). docs/operators.md has the same in a table.
// clang-format off
// NOLINTBEGIN(readability-identifier-naming): and_, not_, or_ and xor_ are no words of C++
#pragma once

#include <limits>

#include "polyphase/network_tensor.h"

namespace polyphase::api {

// Settings of the operators that have any, and the results of those that have several.
namespace layers {

struct ArgMax {
  // which axis, from 0
  Required<std::int64_t> axis;
  // the axis stays, with size 1
  bool keep = true;
  // of equals take the last instead of the first
  bool last = false;
};

struct ArgMin {
  // which axis, from 0
  Required<std::int64_t> axis;
  // the axis stays, with size 1
  bool keep = true;
  // of equals take the last instead of the first
  bool last = false;
};

struct Attention {
  // multiplies the products
  double scale = 1;
  // query i sees the keys 0 to i only
  bool causal = false;
  // weights that are NaN count as 0: a query that sees no key gives zeros
  bool guarded = false;
};

struct AvgPool {
  // taps per spatial axis, at least 1
  Required<std::vector<std::int64_t>> kernel;
  // distance of neighbouring windows per spatial axis, at least 1
  Required<std::vector<std::int64_t>> stride;
  // distance of neighbouring taps per spatial axis, at least 1
  Required<std::vector<std::int64_t>> dilation;
  // padding before the first element per spatial axis; negative crops
  Required<std::vector<Size>> pre;
  // padding after the last element per spatial axis; negative crops
  Required<std::vector<Size>> post;
  // round the number of windows up; windows that would begin beyond the operand and its pre padding do not count
  bool ceil = false;
  // the divisor counts padding too (not what ceil adds beyond it)
  bool include_pad = false;
};

struct BatchNorm {
  // added to the variance
  double epsilon = 1e-05;
};

struct Bind {
  // one symbol per element
  Required<std::vector<Size>> symbols;
};

struct Cast {
  // the dtype of the result
  Required<DType> to;
};

struct Celu {
  // the scale below 0
  double alpha = 1;
};

struct Clip {
  // the least result
  double low = -std::numeric_limits<double>::infinity();
  // the greatest result
  double high = std::numeric_limits<double>::infinity();
};

struct Concat {
  // which axis, from 0
  Required<std::int64_t> axis;
};

struct Conv {
  // distance of neighbouring windows per spatial axis, at least 1
  Required<std::vector<std::int64_t>> stride;
  // distance of neighbouring taps per spatial axis, at least 1
  Required<std::vector<std::int64_t>> dilation;
  // the channels fall into this many independent groups
  std::int64_t groups = 1;
  // zeros before the first element per spatial axis; negative crops
  Required<std::vector<Size>> pre;
  // zeros after the last element per spatial axis; negative crops
  Required<std::vector<Size>> post;
  // the narrowest type that a kernel may round floats to before it multiplies them, f32 or bf16; sums are never
  // narrower than f32. i32: the floats are whole numbers whose sums f32 holds exactly, and no others may be computed
  // from them; i8: the same, and bf16 holds them as well
  DType products = DType::f32;
  // whether a kernel may also round to `products` what it has computed from the operands, as minimal filtering does;
  // else only the operands themselves
  bool rounds_transformed = false;
  // whether a kernel may filter four outputs at once along each of two axes, F(4, 2) and F(4, 3), with some three
  // times the error of direct sums in the L2 norm
  bool filters_fours = false;
};

struct ConvTranspose {
  // distance in the output of neighbouring inputs per spatial axis, at least 1
  Required<std::vector<std::int64_t>> stride;
  // distance in the output of neighbouring taps per spatial axis, at least 1
  Required<std::vector<std::int64_t>> dilation;
  // the channels fall into this many independent groups
  std::int64_t groups = 1;
  // elements cut off at the beginning per spatial axis; negative adds
  Required<std::vector<Size>> pre;
  // elements cut off at the end per spatial axis; negative adds
  Required<std::vector<Size>> post;
  // the narrowest type that a kernel may round floats to before it multiplies them, f32 or bf16; sums are never
  // narrower than f32. i32: the floats are whole numbers whose sums f32 holds exactly, and no others may be computed
  // from them; i8: the same, and bf16 holds them as well
  DType products = DType::f32;
  // whether a kernel may also round to `products` what it has computed from the operands, as minimal filtering does;
  // else only the operands themselves
  bool rounds_transformed = false;
  // whether a kernel may filter four outputs at once along each of two axes, F(4, 2) and F(4, 3), with some three
  // times the error of direct sums in the L2 norm
  bool filters_fours = false;
};

struct CountUnique {
  // compares slices along this axis; -1: elements
  std::int64_t axis = -1;
};

struct CumLogSumExp {
  // which axis; negative ones count from the end
  Required<Size> axis;
  // an element does not count for its own place
  bool exclusive = false;
  // from the end to the beginning
  bool reverse = false;
};

struct CumMax {
  // which axis, from 0
  Required<std::int64_t> axis;
};

struct CumMaxResults {
  Result<NetworkTensor> values;  // the type of x
  Result<NetworkTensor> indices;  // i64, the shape of x
};

struct CumMin {
  // which axis, from 0
  Required<std::int64_t> axis;
};

struct CumMinResults {
  Result<NetworkTensor> values;  // the type of x
  Result<NetworkTensor> indices;  // i64, the shape of x
};

struct CumProd {
  // which axis; negative ones count from the end
  Required<Size> axis;
  // an element does not count for its own place
  bool exclusive = false;
  // from the end to the beginning
  bool reverse = false;
};

struct CumSum {
  // which axis; negative ones count from the end
  Required<Size> axis;
  // an element does not count for its own place
  bool exclusive = false;
  // from the end to the beginning
  bool reverse = false;
};

struct DepthToSpace {
  // b, at least 1
  Required<std::int64_t> block;
  // the order of the channels: dcr, crd
  std::string mode = "dcr";
};

struct Dft {
  // which axis, from 0; not the last
  Required<std::int64_t> axis;
  // n, the number of points
  Required<Size> length;
  // from bins to places
  bool inverse = false;
  // only bins 0 … n/2 are there
  bool onesided = false;
};

struct Dims {
  // the sizes
  Required<std::vector<Size>> values;
  // one value of rank 0 instead of a vector
  bool scalar = false;
};

struct Elu {
  // the scale below 0
  double alpha = 1;
};

struct Expand {
  // the new sizes; x's sizes equal them or are 1
  Required<std::vector<Size>> shape;
};

struct Gather {
  // which axis is indexed
  Required<std::int64_t> axis;
};

struct GatherElements {
  // which axis is indexed
  Required<std::int64_t> axis;
};

struct GatherNd {
  // how many leading axes x and indices share
  std::int64_t batch_dims = 0;
};

struct Gelu {
  // which formula: none, tanh
  std::string approximate = "none";
};

struct GridSample {
  // the interpolation: linear, nearest, cubic
  std::string mode = "linear";
  // what lies beyond the operand: zeros, border, reflection
  std::string padding = "zeros";
  // -1 and 1 are the centres of the outer elements
  bool align_corners = false;
};

struct GroupNorm {
  // number of groups; divides C
  Required<std::int64_t> groups;
  // added to the variance
  double epsilon = 1e-05;
};

struct Gru {
  // through the steps: forward, reverse, bidirectional
  std::string direction = "forward";
  // names between commas, for one direction or for each; empty: the cell's usual ones
  std::string activations = "";
  // by activation
  std::vector<double> alphas = {};
  // by activation
  std::vector<double> betas = {};
  // what enters an activation is cut to [-clip, clip]; 0: it is not
  double clip = 0;
  // the reset gate multiplies the product with R, not what enters it
  bool linear_before_reset = false;
};

struct GruResults {
  Result<NetworkTensor> y;  // [steps, directions, batch, hidden]: h after each step
  Result<NetworkTensor> h;  // [directions, batch, hidden]: h after the last
};

struct HardSigmoid {
  // the slope
  double alpha = 0.2;
  // the value at 0
  double beta = 0.5;
};

struct InstanceNorm {
  // added to the variance
  double epsilon = 1e-05;
};

struct LayerNorm {
  // the first normalised axis, 0 to rank - 1
  Required<std::int64_t> axis;
  // added to the variance
  double epsilon = 1e-05;
  // take the mean out; without it y = x / sqrt(mean of x squared + epsilon) * scale + bias (RMSNorm)
  bool centre = true;
};

struct LayoutTransform {
  // the layout of x: NCHW, NHWC, NCHW16c, OIHW, …
  Required<std::string> from_layout;
  // the layout of y: the same letters
  Required<std::string> to_layout;
  // how many elements the axis has that `from_layout` has in blocks; 0: as many as fill them
  Size channels = 0;
};

struct LeakyRelu {
  // the slope below 0
  double alpha = 0.01;
};

struct LogSoftmax {
  // the axis, 0 to rank - 1
  Required<std::int64_t> axis;
};

struct Lstm {
  // through the steps: forward, reverse, bidirectional
  std::string direction = "forward";
  // names between commas, for one direction or for each; empty: the cell's usual ones
  std::string activations = "";
  // by activation
  std::vector<double> alphas = {};
  // by activation
  std::vector<double> betas = {};
  // what enters an activation is cut to [-clip, clip]; 0: it is not
  double clip = 0;
  // f is 1 - i
  bool input_forget = false;
};

struct LstmResults {
  Result<NetworkTensor> y;  // [steps, directions, batch, hidden]: h after each step
  Result<NetworkTensor> h;  // [directions, batch, hidden]: h after the last
  Result<NetworkTensor> c;  // [directions, batch, hidden]: c after the last step
};

struct Matmul {
  // the narrowest type that a kernel may round floats to before it multiplies them, f32 or bf16; sums are never
  // narrower than f32. i32: the floats are whole numbers whose sums f32 holds exactly, and no others may be computed
  // from them; i8: the same, and bf16 holds them as well
  DType products = DType::f32;
};

struct MaxPool {
  // taps per spatial axis, at least 1
  Required<std::vector<std::int64_t>> kernel;
  // distance of neighbouring windows per spatial axis, at least 1
  Required<std::vector<std::int64_t>> stride;
  // distance of neighbouring taps per spatial axis, at least 1
  Required<std::vector<std::int64_t>> dilation;
  // padding before the first element per spatial axis; negative crops
  Required<std::vector<Size>> pre;
  // padding after the last element per spatial axis; negative crops
  Required<std::vector<Size>> post;
  // round the number of windows up; windows that would begin beyond the operand and its pre padding do not count
  bool ceil = false;
};

struct MaxPoolIndices {
  // taps per spatial axis, at least 1
  Required<std::vector<std::int64_t>> kernel;
  // distance of neighbouring windows per spatial axis, at least 1
  Required<std::vector<std::int64_t>> stride;
  // distance of neighbouring taps per spatial axis, at least 1
  Required<std::vector<std::int64_t>> dilation;
  // padding before the first element per spatial axis; negative crops
  Required<std::vector<Size>> pre;
  // padding after the last element per spatial axis; negative crops
  Required<std::vector<Size>> post;
  // round the number of windows up; windows that would begin beyond the operand and its pre padding do not count
  bool ceil = false;
  // counts a plane's elements with the first spatial axis moving fastest
  bool column_major = false;
};

struct Mod {
  // the sign of x, as C's fmod
  bool fmod = false;
};

struct NonMaxSuppression {
  // how many boxes per image and class at most
  Required<Size> most;
  // a box is its centre and size (x, y, width, height), else two corners
  bool centre = false;
};

struct NonMaxSuppressionResults {
  Result<NetworkTensor> chosen;  // i64, [images * classes * min(most, boxes), 3]: image, class, box; rows from `count` on are 0
  Result<NetworkTensor> count;  // i64, a scalar: how many were chosen
};

struct Nonzero {
  // how many elements are not 0: a symbol that `bind` gave to count_nonzero's result
  Required<Size> count;
};

struct OneHot {
  // the size of the new axis
  Required<Size> depth;
  // where the new axis stands in the result
  Required<std::int64_t> axis;
};

struct Pad {
  // elements before, per axis; negative crops
  Required<std::vector<Size>> pre;
  // elements after, per axis; negative crops
  Required<std::vector<Size>> post;
  // what the new elements are: constant, reflect, edge, wrap
  std::string mode = "constant";
  // the element of mode constant, in the dtype of x
  double value = 0;
};

struct Random {
  // the sizes of the result
  Required<std::vector<Size>> shape;
  // a float dtype
  DType dtype = DType::f32;
  // uniform from a to b, or normal of mean a and standard deviation b: uniform, normal
  std::string distribution = "uniform";
  // the low end, or the mean
  double a = 0;
  // the high end, or the standard deviation
  double b = 1;
  // the seed: which sequence; all 64 bits count
  Required<std::int64_t> key;
};

struct Range {
  // the first
  Required<Size> start;
  // how many
  Required<Size> count;
  // the distance
  Required<std::int64_t> step;
};

struct ReduceL1 {
  // which axes, from 0; none: nothing is reduced
  Required<std::vector<std::int64_t>> axes;
  // the axes stay, with size 1
  bool keep = true;
};

struct ReduceL2 {
  // which axes, from 0; none: nothing is reduced
  Required<std::vector<std::int64_t>> axes;
  // the axes stay, with size 1
  bool keep = true;
};

struct ReduceLogSum {
  // which axes, from 0; none: nothing is reduced
  Required<std::vector<std::int64_t>> axes;
  // the axes stay, with size 1
  bool keep = true;
};

struct ReduceLogSumExp {
  // which axes, from 0; none: nothing is reduced
  Required<std::vector<std::int64_t>> axes;
  // the axes stay, with size 1
  bool keep = true;
};

struct ReduceMax {
  // which axes, from 0; none: nothing is reduced
  Required<std::vector<std::int64_t>> axes;
  // the axes stay, with size 1
  bool keep = true;
};

struct ReduceMean {
  // which axes, from 0; none: nothing is reduced
  Required<std::vector<std::int64_t>> axes;
  // the axes stay, with size 1
  bool keep = true;
};

struct ReduceMin {
  // which axes, from 0; none: nothing is reduced
  Required<std::vector<std::int64_t>> axes;
  // the axes stay, with size 1
  bool keep = true;
};

struct ReduceProd {
  // which axes, from 0; none: nothing is reduced
  Required<std::vector<std::int64_t>> axes;
  // the axes stay, with size 1
  bool keep = true;
};

struct ReduceSum {
  // which axes, from 0; none: nothing is reduced
  Required<std::vector<std::int64_t>> axes;
  // the axes stay, with size 1
  bool keep = true;
};

struct ReduceSumSquare {
  // which axes, from 0; none: nothing is reduced
  Required<std::vector<std::int64_t>> axes;
  // the axes stay, with size 1
  bool keep = true;
};

struct Reshape {
  // the new sizes, with as many elements as x
  Required<std::vector<Size>> shape;
};

struct Resize {
  // the result's size per axis
  Required<std::vector<Size>> sizes;
  // out/in per axis, for the coordinates; empty means the ratio of the sizes
  std::vector<double> scales = {};
  // the interpolation: nearest, linear, cubic
  std::string mode = "nearest";
  // how result places map to operand coordinates: half_pixel, half_pixel_symmetric, pytorch_half_pixel,
  // align_corners, asymmetric, tf_half_pixel_for_nn, tf_crop_and_resize
  std::string coordinate = "half_pixel";
  // how mode nearest rounds a coordinate: round_prefer_floor, round_prefer_ceil, floor, ceil
  std::string nearest = "round_prefer_floor";
  // a of the cubic kernel: -0.75 (PyTorch, OpenCV) or -0.5 (Keys)
  double cubic_coefficient = -0.75;
  // places outside the operand weigh 0 instead of repeating the edge
  bool exclude_outside = false;
  // when shrinking, widen the linear or cubic kernel by in/out
  bool antialias = false;
  // tf_crop_and_resize only: starts, then ends, per axis, as fractions of the operand
  std::vector<double> roi = {};
  // tf_crop_and_resize only: the value of places outside the operand
  double extrapolation = 0;
};

struct Rnn {
  // through the steps: forward, reverse, bidirectional
  std::string direction = "forward";
  // names between commas, for one direction or for each; empty: the cell's usual ones
  std::string activations = "";
  // by activation
  std::vector<double> alphas = {};
  // by activation
  std::vector<double> betas = {};
  // what enters an activation is cut to [-clip, clip]; 0: it is not
  double clip = 0;
};

struct RnnResults {
  Result<NetworkTensor> y;  // [steps, directions, batch, hidden]: h after each step
  Result<NetworkTensor> h;  // [directions, batch, hidden]: h after the last
};

struct RoiAlign {
  // rows of the result
  Required<std::int64_t> height;
  // columns of the result
  Required<std::int64_t> width;
  // from the regions' coordinates to pixels of x
  double scale = 1;
  // samples per cell and axis; 0: as many as the cell has pixels, rounded up
  std::int64_t samples = 0;
  // coordinates are of corners, so pixel centres lie at halves; else regions are at least one pixel in size
  bool half_pixel = true;
  // how samples are joined: avg, max
  std::string mode = "avg";
};

struct RoiMaxPool {
  // rows of the result
  Required<std::int64_t> height;
  // columns of the result
  Required<std::int64_t> width;
  // from the regions' coordinates to pixels of x
  double scale = 1;
};

struct ScatterElements {
  // which axis is indexed
  Required<std::int64_t> axis;
  // how an update meets the element; none replaces it, and of two for one element the last in row-major order counts:
  // none, add, mul, max, min
  std::string reduction = "none";
};

struct ScatterNd {
  // how an update meets the element; none replaces it, and of two for one element the last in row-major order counts:
  // none, add, mul, max, min
  std::string reduction = "none";
};

struct Selu {
  // the scale below 0
  double alpha = 1.6732631921768188;
  // the scale
  double gamma = 1.0507010221481323;
};

struct Slice {
  // the first element, one entry per axis
  Required<std::vector<Size>> start;
  // how many elements, one entry per axis
  Required<std::vector<Size>> size;
  // the distance between them, one entry per axis, not 0
  Required<std::vector<std::int64_t>> step;
};

struct Softmax {
  // the axis, 0 to rank - 1
  Required<std::int64_t> axis;
};

struct SpaceToDepth {
  // b, at least 1
  Required<std::int64_t> block;
};

struct ThresholdedRelu {
  // the threshold
  double alpha = 1;
};

struct Tile {
  // how many copies, one entry per axis
  Required<std::vector<Size>> repeats;
};

struct TopK {
  // which axis, from 0
  Required<std::int64_t> axis;
  // how many; at most the axis holds
  Required<Size> k;
  // the greatest, else the least
  bool largest = true;
};

struct TopKResults {
  Result<NetworkTensor> values;  // x with k elements along the axis
  Result<NetworkTensor> indices;  // i64, the shape of values
};

struct Transpose {
  // a permutation of 0 … rank - 1
  Required<std::vector<std::int64_t>> order;
};

struct Trilu {
  // the diagonal
  Size k = 0;
  // what lies above stays, else what lies below
  bool upper = true;
};

struct Unique {
  // how many there are: a symbol that `bind` gave to count_unique's result
  Required<Size> count;
  // compares slices along this axis; -1: elements
  std::int64_t axis = -1;
  // in rising order, else in order of first appearance
  bool sorted = true;
};

struct UniqueResults {
  Result<NetworkTensor> y;  // [count], or x with count slices along the axis
  Result<NetworkTensor> first;  // i64, [count]: the first place of each
  Result<NetworkTensor> which;  // i64, one per element or slice of x: its place in y
  Result<NetworkTensor> counts;  // i64, [count]
};

}  // namespace layers

class NetworkLayers : public NetworkBase {
 public:
  // |x|.
  // x: any shape
  Result<NetworkTensor> abs(const Operand& x, std::string_view name = {}) {
    return result(add_layer("abs", {x}, {}, name), 0);
  }

  // The arc cosine.
  // x: any shape
  Result<NetworkTensor> acos(const Operand& x, std::string_view name = {}) {
    return result(add_layer("acos", {x}, {}, name), 0);
  }

  // The inverse hyperbolic cosine.
  // x: any shape
  Result<NetworkTensor> acosh(const Operand& x, std::string_view name = {}) {
    return result(add_layer("acosh", {x}, {}, name), 0);
  }

  // x + y; integers wrap.
  // x: any shape
  // y: a shape that broadcasts with x
  Result<NetworkTensor> add(const Operand& x, const Operand& y, std::string_view name = {}) {
    return result(add_layer("add", {x, y}, {}, name), 0);
  }

  // x + y of any two float dtypes, rounded once, to x's.
  // x: any shape
  // y: a shape that broadcasts with x
  Result<NetworkTensor> add_mixed(const Operand& x, const Operand& y, std::string_view name = {}) {
    return result(add_layer("add_mixed", {x, y}, {}, name), 0);
  }

  // Logical and.
  // x: any shape
  // y: a shape that broadcasts with x
  Result<NetworkTensor> and_(const Operand& x, const Operand& y, std::string_view name = {}) {
    return result(add_layer("and", {x, y}, {}, name), 0);
  }

  // The index of the greatest element along an axis; NaN counts as greater than all.
  // x: any shape with at least one element along the axis
  Result<NetworkTensor> arg_max(const Operand& x, const layers::ArgMax& with, std::string_view name = {}) {
    return result(add_layer("arg_max", {x}, {{"axis", with.axis.value()}, {"keep", with.keep}, {"last", with.last}}, name), 0);
  }

  // The index of the least element along an axis; NaN counts as less than all.
  // x: any shape with at least one element along the axis
  Result<NetworkTensor> arg_min(const Operand& x, const layers::ArgMin& with, std::string_view name = {}) {
    return result(add_layer("arg_min", {x}, {{"axis", with.axis.value()}, {"keep", with.keep}, {"last", with.last}}, name), 0);
  }

  // The arc sine.
  // x: any shape
  Result<NetworkTensor> asin(const Operand& x, std::string_view name = {}) {
    return result(add_layer("asin", {x}, {}, name), 0);
  }

  // The inverse hyperbolic sine.
  // x: any shape
  Result<NetworkTensor> asinh(const Operand& x, std::string_view name = {}) {
    return result(add_layer("asinh", {x}, {}, name), 0);
  }

  // The arc tangent.
  // x: any shape
  Result<NetworkTensor> atan(const Operand& x, std::string_view name = {}) {
    return result(add_layer("atan", {x}, {}, name), 0);
  }

  // The inverse hyperbolic tangent.
  // x: any shape
  Result<NetworkTensor> atanh(const Operand& x, std::string_view name = {}) {
    return result(add_layer("atanh", {x}, {}, name), 0);
  }

  // Scaled dot-product attention, y = softmax(scale * q * transpose(k) + bias + mask) * v for every head; the softmax
  // runs over the keys.
  // Neighbouring heads of q share a head of k and v where those have fewer. A bias or mask of -inf hides a key; they
  // are two where their sum would be larger than both, as in shifted windows, whose bias is of the heads and whose
  // mask of the windows (Liu et al. 2021).
  // Source: torch.nn.functional.scaled_dot_product_attention; ONNX operator Attention-23; Vaswani et al. 2017.
  // q: (B, H, S, D), float
  // k: (B, G, T, D), G divides H
  // v: (B, G, T, E)
  // bias: broadcasts to (B, H, S, T); absent means 0 (optional)
  // mask: the same (optional)
  Result<NetworkTensor> attention(const Operand& q, const Operand& k, const Operand& v, const Operand& bias = {}, const Operand& mask = {}, const layers::Attention& with = {}, std::string_view name = {}) {
    return result(add_layer("attention", {q, k, v, bias, mask}, {{"scale", with.scale}, {"causal", with.causal}, {"guarded", with.guarded}}, name), 0);
  }

  // The mean of the elements under each window, per channel, over one to three spatial axes: their sum divided by the
  // number of
  // taps inside the operand or, with include_pad, inside the padded operand. A window without any gives 0.
  // Output size per axis: floor((I + pre + post - (k-1)*dilation - 1) / stride) + 1; with ceil rounded up, but at
  // most
  // ceil((I + pre) / stride).
  // Source: ONNX operator AveragePool; torch.nn.functional.avg_pool2d.
  // x: (N, C, spatial...), one to three spatial axes, float
  Result<NetworkTensor> avg_pool(const Operand& x, const layers::AvgPool& with, std::string_view name = {}) {
    return result(add_layer("avg_pool", {x}, {{"kernel", with.kernel.value()}, {"stride", with.stride.value()}, {"dilation", with.dilation.value()}, {"pre", with.pre.value()}, {"post", with.post.value()}, {"ceil", with.ceil}, {"include_pad", with.include_pad}}, name), 0);
  }

  // Normalisation by given statistics, y = (x - mean) / sqrt(variance + epsilon) * scale + bias, all per channel
  // (axis 1).
  // Source: ONNX operator BatchNormalization in inference; torch.nn.BatchNorm2d in eval mode; Ioffe and Szegedy 2015.
  // x: (N, C, ...), float
  // scale: (C), any float dtype
  // bias: (C)
  // mean: (C)
  // variance: (C)
  Result<NetworkTensor> batch_norm(const Operand& x, const Operand& scale, const Operand& bias, const Operand& mean, const Operand& variance, const layers::BatchNorm& with = {}, std::string_view name = {}) {
    return result(add_layer("batch_norm", {x, scale, bias, mean, variance}, {{"epsilon", with.epsilon}}, name), 0);
  }

  // Gives the elements of x names: from here on the symbols stand for them, as sizes born from data.
  // x: i64 or i32, a vector or a scalar
  Result<NetworkTensor> bind(const Operand& x, const layers::Bind& with, std::string_view name = {}) {
    return result(add_layer("bind", {x}, {{"symbols", with.symbols.value()}}, name), 0);
  }

  // And of every bit.
  // x: any shape
  // y: a shape that broadcasts with x
  Result<NetworkTensor> bitwise_and(const Operand& x, const Operand& y, std::string_view name = {}) {
    return result(add_layer("bitwise_and", {x, y}, {}, name), 0);
  }

  // Every bit flipped.
  // x: any shape
  Result<NetworkTensor> bitwise_not(const Operand& x, std::string_view name = {}) {
    return result(add_layer("bitwise_not", {x}, {}, name), 0);
  }

  // Or of every bit.
  // x: any shape
  // y: a shape that broadcasts with x
  Result<NetworkTensor> bitwise_or(const Operand& x, const Operand& y, std::string_view name = {}) {
    return result(add_layer("bitwise_or", {x, y}, {}, name), 0);
  }

  // Exclusive or of every bit.
  // x: any shape
  // y: a shape that broadcasts with x
  Result<NetworkTensor> bitwise_xor(const Operand& x, const Operand& y, std::string_view name = {}) {
    return result(add_layer("bitwise_xor", {x, y}, {}, name), 0);
  }

  // Converts the dtype. Floats round once to nearest even; floats to integers truncate towards zero and saturate, NaN
  // gives 0; integers to integers wrap; to bool: x != 0.
  // x: any dtype and shape
  Result<NetworkTensor> cast(const Operand& x, const layers::Cast& with, std::string_view name = {}) {
    return result(add_layer("cast", {x}, {{"to", with.to.value()}}, name), 0);
  }

  // The least integer >= x.
  // x: any shape
  Result<NetworkTensor> ceil(const Operand& x, std::string_view name = {}) {
    return result(add_layer("ceil", {x}, {}, name), 0);
  }

  // x where x > 0, else alpha * (exp(x / alpha) - 1).
  // x: any shape
  Result<NetworkTensor> celu(const Operand& x, const layers::Celu& with = {}, std::string_view name = {}) {
    return result(add_layer("celu", {x}, {{"alpha", with.alpha}}, name), 0);
  }

  // min(max(x, low), high); NaN stays NaN.
  // x: any shape
  Result<NetworkTensor> clip(const Operand& x, const layers::Clip& with = {}, std::string_view name = {}) {
    return result(add_layer("clip", {x}, {{"low", with.low}, {"high", with.high}}, name), 0);
  }

  // The operands one after the other along an axis.
  // x: equal dtypes, ranks and sizes but for the axis
  Result<NetworkTensor> concat(const std::vector<Operand>& x, const layers::Concat& with, std::string_view name = {}) {
    return result(add_layer("concat", x, {{"axis", with.axis.value()}}, name), 0);
  }

  // Convolution (cross-correlation, as in every deep-learning system) over one to three spatial axes with zero
  // padding:
  // y[n, m, o] = b[m] + sum over c, t of x[n, c, o*stride + t*dilation - pre] * w[m, c, t], where places outside x
  // count as 0.
  // Output size per axis: floor((I + pre + post - (k-1)*dilation - 1) / stride) + 1. Output channel m reads the input
  // channels
  // of group m / (Cout/groups); groups = C is the depthwise convolution. Negative padding crops the operand.
  // Source: ONNX operator Conv; torch.nn.functional.conv1d, conv2d, conv3d.
  // x: (N, C, spatial...), one to three spatial axes
  // w: (Cout, C/groups, k...), the dtype of x
  // b: (Cout), the dtype of x; absent means 0 (optional)
  Result<NetworkTensor> conv(const Operand& x, const Operand& w, const Operand& b, const layers::Conv& with, std::string_view name = {}) {
    return result(add_layer("conv", {x, w, b}, {{"stride", with.stride.value()}, {"dilation", with.dilation.value()}, {"groups", with.groups}, {"pre", with.pre.value()}, {"post", with.post.value()}, {"products", with.products}, {"rounds_transformed", with.rounds_transformed}, {"filters_fours", with.filters_fours}}, name), 0);
  }

  // Transposed convolution over one to three spatial axes: every input element adds its multiple of the kernel to the
  // output,
  // y[n, m, i*stride + t*dilation - pre] += x[n, c, i] * w[c, m, t], on top of the bias b[m]; what falls outside y is
  // dropped.
  // Output size per axis: (I-1)*stride + (k-1)*dilation + 1 - pre - post. The crop pre, post may have any sign and
  // may be computed;
  // a negative one makes the output grow by places that hold the bias, as do the places that no tap reaches (kernel <
  // stride).
  // PyTorch's padding p and output_padding op are pre = p, post = p - op; ONNX's pads, auto_pad and output_shape
  // reduce likewise.
  // Source: ONNX operator ConvTranspose; torch.nn.functional.conv_transpose1d, conv_transpose2d, conv_transpose3d;
  // Dumoulin and Visin, A guide to convolution arithmetic for deep learning.
  // x: (N, C, spatial...), one to three spatial axes
  // w: (C, Cout/groups, k...), the dtype of x
  // b: (Cout), the dtype of x; absent means 0 (optional)
  Result<NetworkTensor> conv_transpose(const Operand& x, const Operand& w, const Operand& b, const layers::ConvTranspose& with, std::string_view name = {}) {
    return result(add_layer("conv_transpose", {x, w, b}, {{"stride", with.stride.value()}, {"dilation", with.dilation.value()}, {"groups", with.groups}, {"pre", with.pre.value()}, {"post", with.post.value()}, {"products", with.products}, {"rounds_transformed", with.rounds_transformed}, {"filters_fours", with.filters_fours}}, name), 0);
  }

  // The cosine of x in radians.
  // x: any shape
  Result<NetworkTensor> cos(const Operand& x, std::string_view name = {}) {
    return result(add_layer("cos", {x}, {}, name), 0);
  }

  // The hyperbolic cosine.
  // x: any shape
  Result<NetworkTensor> cosh(const Operand& x, std::string_view name = {}) {
    return result(add_layer("cosh", {x}, {}, name), 0);
  }

  // How many elements are not 0 (or not false). NaN is not 0.
  // x: any dtype and shape
  Result<NetworkTensor> count_nonzero(const Operand& x, std::string_view name = {}) {
    return result(add_layer("count_nonzero", {x}, {}, name), 0);
  }

  // How many different elements (or slices along an axis) there are. NaNs are equal to one another.
  // x: any dtype
  Result<NetworkTensor> count_unique(const Operand& x, const layers::CountUnique& with = {}, std::string_view name = {}) {
    return result(add_layer("count_unique", {x}, {{"axis", with.axis}}, name), 0);
  }

  // y[i] = log(exp(x[0]) + … + exp(x[i])) along an axis, without overflow on the way. Source: torch.logcumsumexp.
  // x: float, rank >= 1
  Result<NetworkTensor> cum_log_sum_exp(const Operand& x, const layers::CumLogSumExp& with, std::string_view name = {}) {
    return result(add_layer("cum_log_sum_exp", {x}, {{"axis", with.axis.value()}, {"exclusive", with.exclusive}, {"reverse", with.reverse}}, name), 0);
  }

  // The greatest element so far along an axis, and its index: of equals the last. NaN counts as greater than all.
  // Source: torch.cummax.
  // x: any number dtype, rank >= 1
  layers::CumMaxResults cum_max(const Operand& x, const layers::CumMax& with, std::string_view name = {}) {
    const auto all = add_layer("cum_max", {x}, {{"axis", with.axis.value()}}, name);
    return {result(all, 0), result(all, 1)};
  }

  // The least element so far along an axis, and its index: of equals the last. NaN counts as less than all. Source:
  // torch.cummin.
  // x: any number dtype, rank >= 1
  layers::CumMinResults cum_min(const Operand& x, const layers::CumMin& with, std::string_view name = {}) {
    const auto all = add_layer("cum_min", {x}, {{"axis", with.axis.value()}}, name);
    return {result(all, 0), result(all, 1)};
  }

  // Running products along an axis. Source: ONNX operator CumProd; torch.cumprod.
  // x: any number dtype, rank >= 1
  Result<NetworkTensor> cum_prod(const Operand& x, const layers::CumProd& with, std::string_view name = {}) {
    return result(add_layer("cum_prod", {x}, {{"axis", with.axis.value()}, {"exclusive", with.exclusive}, {"reverse", with.reverse}}, name), 0);
  }

  // Running sums along an axis. Source: ONNX operator CumSum; torch.cumsum.
  // x: any number dtype, rank >= 1
  Result<NetworkTensor> cum_sum(const Operand& x, const layers::CumSum& with, std::string_view name = {}) {
    return result(add_layer("cum_sum", {x}, {{"axis", with.axis.value()}, {"exclusive", with.exclusive}, {"reverse", with.reverse}}, name), 0);
  }

  // Each pixel's channels become a block of pixels: y[n, c, h*b + i, w*b + j] = x[n, channel, h, w] with channel =
  // (i*b + j)*C + c for mode dcr (depth, column, row) and (c*b + i)*b + j for mode crd, where C counts the result's
  // channels.
  // Mode crd is the pixel shuffle of sub-pixel convolution. Source: ONNX operator DepthToSpace;
  // torch.nn.functional.pixel_shuffle.
  // x: (N, C*b*b, H, W)
  Result<NetworkTensor> depth_to_space(const Operand& x, const layers::DepthToSpace& with, std::string_view name = {}) {
    return result(add_layer("depth_to_space", {x}, {{"block", with.block.value()}, {"mode", with.mode}}, name), 0);
  }

  // The determinant of each square matrix; 1 of an empty one. Source: ONNX operator Det; torch.det.
  // x: (…, n, n), float
  Result<NetworkTensor> det(const Operand& x, std::string_view name = {}) {
    return result(add_layer("det", {x}, {}, name), 0);
  }

  // The discrete Fourier transform along an axis, Y[k] = sum over j of x[j] * exp(-2 pi i j k / n); inverse: exp(+2
  // pi i j k / n), divided
  // by n = `length`. The operand is cut to n places or counts as 0 behind its end. Complex numbers lie as (real,
  // imaginary) on the last
  // axis; one number there is real. onesided gives bins 0 … n/2; with inverse it reads them, as half of a spectrum
  // whose other half are the
  // conjugates, and gives real numbers.
  // Source: ONNX operator DFT; numpy.fft.fft, ifft, rfft, irfft.
  // x: (..., places, ..., 1 or 2), float
  Result<NetworkTensor> dft(const Operand& x, const layers::Dft& with, std::string_view name = {}) {
    return result(add_layer("dft", {x}, {{"axis", with.axis.value()}, {"length", with.length.value()}, {"inverse", with.inverse}, {"onesided", with.onesided}}, name), 0);
  }

  // Sizes as data: an i64 vector (or scalar) of size expressions, known once the input shapes are.
  Result<NetworkTensor> dims(const layers::Dims& with, std::string_view name = {}) {
    return result(add_layer("dims", {}, {{"values", with.values.value()}, {"scalar", with.scalar}}, name), 0);
  }

  // x / y; integers truncate towards zero, and an integer divided by 0 is 0.
  // x: any shape
  // y: a shape that broadcasts with x
  Result<NetworkTensor> div(const Operand& x, const Operand& y, std::string_view name = {}) {
    return result(add_layer("div", {x, y}, {}, name), 0);
  }

  // x where x > 0, else alpha * (exp(x) - 1).
  // x: any shape
  Result<NetworkTensor> elu(const Operand& x, const layers::Elu& with = {}, std::string_view name = {}) {
    return result(add_layer("elu", {x}, {{"alpha", with.alpha}}, name), 0);
  }

  // Whether x == y; NaN equals nothing.
  // x: any shape
  // y: a shape that broadcasts with x
  Result<NetworkTensor> equal(const Operand& x, const Operand& y, std::string_view name = {}) {
    return result(add_layer("equal", {x, y}, {}, name), 0);
  }

  // The error function.
  // x: any shape
  Result<NetworkTensor> erf(const Operand& x, std::string_view name = {}) {
    return result(add_layer("erf", {x}, {}, name), 0);
  }

  // e to the power x.
  // x: any shape
  Result<NetworkTensor> exp(const Operand& x, std::string_view name = {}) {
    return result(add_layer("exp", {x}, {}, name), 0);
  }

  // numpy's broadcast_to: unit and missing leading axes repeat their element.
  // x: any dtype and shape
  Result<NetworkTensor> expand(const Operand& x, const layers::Expand& with, std::string_view name = {}) {
    return result(add_layer("expand", {x}, {{"shape", with.shape.value()}}, name), 0);
  }

  // The greatest integer <= x.
  // x: any shape
  Result<NetworkTensor> floor(const Operand& x, std::string_view name = {}) {
    return result(add_layer("floor", {x}, {}, name), 0);
  }

  // Slabs of x along an axis by index, numpy's take.
  // x: any dtype, rank >= 1
  // indices: i64 or i32; negative ones count from the end; one out of range is an error at run time
  Result<NetworkTensor> gather(const Operand& x, const Operand& indices, const layers::Gather& with, std::string_view name = {}) {
    return result(add_layer("gather", {x, indices}, {{"axis", with.axis.value()}}, name), 0);
  }

  // y[i, j, …] = x[i, …, indices[i, j, …], …]: one index per element, along an axis, torch.gather.
  // x: any dtype, rank >= 1
  // indices: i64 or i32; negative ones count from the end; one out of range is an error at run time
  Result<NetworkTensor> gather_elements(const Operand& x, const Operand& indices, const layers::GatherElements& with, std::string_view name = {}) {
    return result(add_layer("gather_elements", {x, indices}, {{"axis", with.axis.value()}}, name), 0);
  }

  // Slabs of x by index tuples: y[b, i, :] = x[b, indices[b, i, 0], indices[b, i, 1], …, :].
  // x: any dtype, rank >= 1
  // indices: i64 or i32; negative ones count from the end; one out of range is an error at run time
  Result<NetworkTensor> gather_nd(const Operand& x, const Operand& indices, const layers::GatherNd& with = {}, std::string_view name = {}) {
    return result(add_layer("gather_nd", {x, indices}, {{"batch_dims", with.batch_dims}}, name), 0);
  }

  // x * Phi(x), Phi the standard normal distribution; or its tanh approximation.
  // x: any shape
  Result<NetworkTensor> gelu(const Operand& x, const layers::Gelu& with = {}, std::string_view name = {}) {
    return result(add_layer("gelu", {x}, {{"approximate", with.approximate}}, name), 0);
  }

  // Whether x > y.
  // x: any shape
  // y: a shape that broadcasts with x
  Result<NetworkTensor> greater(const Operand& x, const Operand& y, std::string_view name = {}) {
    return result(add_layer("greater", {x, y}, {}, name), 0);
  }

  // Whether x >= y.
  // x: any shape
  // y: a shape that broadcasts with x
  Result<NetworkTensor> greater_equal(const Operand& x, const Operand& y, std::string_view name = {}) {
    return result(add_layer("greater_equal", {x, y}, {}, name), 0);
  }

  // Reads an image at given places: y[n, c, o] = x[n, c, grid[n, o]]. A place is one coordinate per spatial axis, the
  // last axis first;
  // -1 and 1 are the centres of the outer elements (align_corners) or their outer edges. linear weighs the two, cubic
  // (a = -0.75) the four
  // nearest elements of each axis. Beyond the operand lie zeros, or its outer elements (border), or its mirror
  // images, mirrored where -1
  // and 1 lie (reflection); cubic bounds each of its places, the others the coordinate.
  // Source: torch.nn.functional.grid_sample; ONNX operator GridSample.
  // x: (N, C, one to three spatial axes), float
  // grid: (N, as many axes, coordinates), any float dtype
  Result<NetworkTensor> grid_sample(const Operand& x, const Operand& grid, const layers::GridSample& with = {}, std::string_view name = {}) {
    return result(add_layer("grid_sample", {x, grid}, {{"mode", with.mode}, {"padding", with.padding}, {"align_corners", with.align_corners}}, name), 0);
  }

  // Normalisation of groups of C/groups neighbouring channels of each image: y = (x - mean) / sqrt(variance +
  // epsilon) * scale +
  // bias, mean and (biased) variance over a group's channels and the spatial axes, scale and bias per channel.
  // Source: ONNX operator GroupNormalization-21; torch.nn.GroupNorm; Wu and He 2018.
  // x: (N, C, ...), float
  // scale: (C), any float dtype; absent means 1 (optional)
  // bias: (C), any float dtype; absent means 0 (optional)
  Result<NetworkTensor> group_norm(const Operand& x, const Operand& scale, const Operand& bias, const layers::GroupNorm& with, std::string_view name = {}) {
    return result(add_layer("group_norm", {x, scale, bias}, {{"groups", with.groups.value()}, {"epsilon", with.epsilon}}, name), 0);
  }

  // z = f(X + h·R + Wb + Rb), r = f(X + h·R + Wb + Rb), n = g(X + (r⊙h)·R + Wb + Rb), h' = (1 - z)⊙n + z⊙h.
  // X is the operand x at the step: the input times its weights already, [directions · gates · hidden] for each of
  // the batch. R, Wb, Rb are the blocks of r and of the bias for the gate. The reverse direction goes through the
  // steps from the last to the first. Beyond its length a sequence of the batch keeps its state and gives zeros.
  // Source: ONNX operators RNN-22, LSTM-22, GRU-22.
  // x: [steps, batch, directions · gates · hidden], float
  // r: [directions, gates · hidden, hidden]
  // bias: [directions, 2 · gates · hidden]: Wb of all gates, then Rb (optional)
  // lengths: [batch], i32: steps of each sequence of the batch; absent: all (optional)
  // initial_h: [directions, batch, hidden]; absent: 0 (optional)
  layers::GruResults gru(const Operand& x, const Operand& r, const Operand& bias = {}, const Operand& lengths = {}, const Operand& initial_h = {}, const layers::Gru& with = {}, std::string_view name = {}) {
    const auto all = add_layer("gru", {x, r, bias, lengths, initial_h}, {{"direction", with.direction}, {"activations", with.activations}, {"alphas", with.alphas}, {"betas", with.betas}, {"clip", with.clip}, {"linear_before_reset", with.linear_before_reset}}, name);
    return {result(all, 0), result(all, 1)};
  }

  // clip(alpha * x + beta, 0, 1).
  // x: any shape
  Result<NetworkTensor> hard_sigmoid(const Operand& x, const layers::HardSigmoid& with = {}, std::string_view name = {}) {
    return result(add_layer("hard_sigmoid", {x}, {{"alpha", with.alpha}, {"beta", with.beta}}, name), 0);
  }

  // x * clip(x / 6 + 1/2, 0, 1).
  // x: any shape
  Result<NetworkTensor> hard_swish(const Operand& x, std::string_view name = {}) {
    return result(add_layer("hard_swish", {x}, {}, name), 0);
  }

  // The operand itself.
  // x: any dtype and shape
  Result<NetworkTensor> identity(const Operand& x, std::string_view name = {}) {
    return result(add_layer("identity", {x}, {}, name), 0);
  }

  // Normalisation of each channel of each image: y = (x - mean) / sqrt(variance + epsilon) * scale + bias, mean and
  // (biased)
  // variance over the spatial axes. Source: ONNX operator InstanceNormalization; torch.nn.InstanceNorm2d; Ulyanov et
  // al. 2016.
  // x: (N, C, spatial...), float
  // scale: (C), any float dtype; absent means 1 (optional)
  // bias: (C), any float dtype; absent means 0 (optional)
  Result<NetworkTensor> instance_norm(const Operand& x, const Operand& scale = {}, const Operand& bias = {}, const layers::InstanceNorm& with = {}, std::string_view name = {}) {
    return result(add_layer("instance_norm", {x, scale, bias}, {{"epsilon", with.epsilon}}, name), 0);
  }

  // Whether x is infinite.
  // x: any shape
  Result<NetworkTensor> is_inf(const Operand& x, std::string_view name = {}) {
    return result(add_layer("is_inf", {x}, {}, name), 0);
  }

  // Whether x is NaN.
  // x: any shape
  Result<NetworkTensor> is_nan(const Operand& x, std::string_view name = {}) {
    return result(add_layer("is_nan", {x}, {}, name), 0);
  }

  // Normalisation over the axes from `axis` to the last: y = (x - mean) / sqrt(variance + epsilon) * scale + bias,
  // with the
  // biased variance. Source: ONNX operator LayerNormalization; torch.nn.LayerNorm; Ba et al. 2016.
  // x: any rank above 0, float
  // scale: broadcasts to the normalised axes, any float dtype; absent means 1 (optional)
  // bias: broadcasts to the normalised axes, any float dtype; absent means 0 (optional)
  Result<NetworkTensor> layer_norm(const Operand& x, const Operand& scale, const Operand& bias, const layers::LayerNorm& with, std::string_view name = {}) {
    return result(add_layer("layer_norm", {x, scale, bias}, {{"axis", with.axis.value()}, {"epsilon", with.epsilon}, {"centre", with.centre}}, name), 0);
  }

  // The same tensor with its axes in another order, or with one of them in blocks. A layout has a capital letter for
  // each axis,
  // outermost first, and may end with a block of one axis, whose elements lie innermost: NCHW16c is (N, ceil(C/16),
  // H, W, 16). Elements
  // that fill the last block are zero. The compiler writes it as transposes, which it moves to where they meet their
  // inverse.
  // Source: TVM's operator layout_transform; the blocked layouts nChw8c and nChw16c of oneDNN.
  // x: as `from_layout` says; any dtype
  Result<NetworkTensor> layout_transform(const Operand& x, const layers::LayoutTransform& with, std::string_view name = {}) {
    return result(add_layer("layout_transform", {x}, {{"from_layout", with.from_layout.value()}, {"to_layout", with.to_layout.value()}, {"channels", with.channels}}, name), 0);
  }

  // x where x >= 0, else alpha * x.
  // x: any shape
  Result<NetworkTensor> leaky_relu(const Operand& x, const layers::LeakyRelu& with = {}, std::string_view name = {}) {
    return result(add_layer("leaky_relu", {x}, {{"alpha", with.alpha}}, name), 0);
  }

  // Whether x < y.
  // x: any shape
  // y: a shape that broadcasts with x
  Result<NetworkTensor> less(const Operand& x, const Operand& y, std::string_view name = {}) {
    return result(add_layer("less", {x, y}, {}, name), 0);
  }

  // Whether x <= y.
  // x: any shape
  // y: a shape that broadcasts with x
  Result<NetworkTensor> less_equal(const Operand& x, const Operand& y, std::string_view name = {}) {
    return result(add_layer("less_equal", {x, y}, {}, name), 0);
  }

  // The natural logarithm.
  // x: any shape
  Result<NetworkTensor> log(const Operand& x, std::string_view name = {}) {
    return result(add_layer("log", {x}, {}, name), 0);
  }

  // y = x - log(sum(exp(x))), the sum over the elements along one axis.
  // Source: ONNX operators Softmax-13 and LogSoftmax-13; torch.softmax.
  // x: any rank above 0, float
  Result<NetworkTensor> log_softmax(const Operand& x, const layers::LogSoftmax& with, std::string_view name = {}) {
    return result(add_layer("log_softmax", {x}, {{"axis", with.axis.value()}}, name), 0);
  }

  // i, f = f(X + h·R + P⊙c + Wb + Rb), c' = f⊙c + i⊙g(X + h·R + Wb + Rb), o = f(X + h·R + P⊙c' + Wb + Rb),
  // h' = o⊙h(c'); the gates' blocks stand in the order i, o, f, c.
  // X is the operand x at the step: the input times its weights already, [directions · gates · hidden] for each of
  // the batch. R, Wb, Rb are the blocks of r and of the bias for the gate. The reverse direction goes through the
  // steps from the last to the first. Beyond its length a sequence of the batch keeps its state and gives zeros.
  // Source: ONNX operators RNN-22, LSTM-22, GRU-22.
  // x: [steps, batch, directions · gates · hidden], float
  // r: [directions, gates · hidden, hidden]
  // bias: [directions, 2 · gates · hidden]: Wb of all gates, then Rb (optional)
  // lengths: [batch], i32: steps of each sequence of the batch; absent: all (optional)
  // initial_h: [directions, batch, hidden]; absent: 0 (optional)
  // initial_c: [directions, batch, hidden]; absent: 0 (optional)
  // peephole: [directions, 3 · hidden]: for i, o, f (optional)
  layers::LstmResults lstm(const Operand& x, const Operand& r, const Operand& bias = {}, const Operand& lengths = {}, const Operand& initial_h = {}, const Operand& initial_c = {}, const Operand& peephole = {}, const layers::Lstm& with = {}, std::string_view name = {}) {
    const auto all = add_layer("lstm", {x, r, bias, lengths, initial_h, initial_c, peephole}, {{"direction", with.direction}, {"activations", with.activations}, {"alphas", with.alphas}, {"betas", with.betas}, {"clip", with.clip}, {"input_forget", with.input_forget}}, name);
    return {result(all, 0), result(all, 1), result(all, 2)};
  }

  // Matrix product, y[..., i, j] = sum over k of a[..., i, k] * b[..., k, j]. The leading axes are batches and
  // broadcast.
  // A 1-D first operand counts as a row, a 1-D second one as a column, and that axis is left out of the result.
  // Source: numpy.matmul; ONNX operator MatMul.
  // a: (..., I, K) or (K)
  // b: (..., K, J) or (K), the dtype of a
  Result<NetworkTensor> matmul(const Operand& a, const Operand& b, const layers::Matmul& with = {}, std::string_view name = {}) {
    return result(add_layer("matmul", {a, b}, {{"products", with.products}}, name), 0);
  }

  // The greater of x and y; NaN if either is.
  // x: any shape
  // y: a shape that broadcasts with x
  Result<NetworkTensor> max(const Operand& x, const Operand& y, std::string_view name = {}) {
    return result(add_layer("max", {x, y}, {}, name), 0);
  }

  // The largest element under each window, per channel, over one to three spatial axes. Padding counts as minus
  // infinity; a
  // window of padding alone gives minus infinity, or the lowest integer. NaN wins.
  // Output size per axis: floor((I + pre + post - (k-1)*dilation - 1) / stride) + 1; with ceil rounded up, but at
  // most
  // ceil((I + pre) / stride).
  // Source: ONNX operator MaxPool; torch.nn.functional.max_pool2d.
  // x: (N, C, spatial...), one to three spatial axes, numeric
  Result<NetworkTensor> max_pool(const Operand& x, const layers::MaxPool& with, std::string_view name = {}) {
    return result(add_layer("max_pool", {x}, {{"kernel", with.kernel.value()}, {"stride", with.stride.value()}, {"dilation", with.dilation.value()}, {"pre", with.pre.value()}, {"post", with.post.value()}, {"ceil", with.ceil}}, name), 0);
  }

  // Where max_pool finds its elements: numbers in the whole operand, row-major; of equals the first, of NaN the last.
  // A window of padding alone gives its plane's first.
  // Output size per axis: floor((I + pre + post - (k-1)*dilation - 1) / stride) + 1; with ceil rounded up, but at
  // most
  // ceil((I + pre) / stride).
  // Source: ONNX operator MaxPool, result Indices.
  // x: (N, C, spatial...), one to three spatial axes, numeric
  Result<NetworkTensor> max_pool_indices(const Operand& x, const layers::MaxPoolIndices& with, std::string_view name = {}) {
    return result(add_layer("max_pool_indices", {x}, {{"kernel", with.kernel.value()}, {"stride", with.stride.value()}, {"dilation", with.dilation.value()}, {"pre", with.pre.value()}, {"post", with.post.value()}, {"ceil", with.ceil}, {"column_major", with.column_major}}, name), 0);
  }

  // The lesser of x and y; NaN if either is.
  // x: any shape
  // y: a shape that broadcasts with x
  Result<NetworkTensor> min(const Operand& x, const Operand& y, std::string_view name = {}) {
    return result(add_layer("min", {x, y}, {}, name), 0);
  }

  // x * tanh(softplus(x)).
  // x: any shape
  Result<NetworkTensor> mish(const Operand& x, std::string_view name = {}) {
    return result(add_layer("mish", {x}, {}, name), 0);
  }

  // x modulo y with the sign of y; with the sign of x if fmod. An integer modulo 0 is 0.
  // x: any shape
  // y: a shape that broadcasts with x
  Result<NetworkTensor> mod(const Operand& x, const Operand& y, const layers::Mod& with = {}, std::string_view name = {}) {
    return result(add_layer("mod", {x, y}, {{"fmod", with.fmod}}, name), 0);
  }

  // x * y; integers wrap.
  // x: any shape
  // y: a shape that broadcasts with x
  Result<NetworkTensor> mul(const Operand& x, const Operand& y, std::string_view name = {}) {
    return result(add_layer("mul", {x, y}, {}, name), 0);
  }

  // -x; integers wrap.
  // x: any shape
  Result<NetworkTensor> neg(const Operand& x, std::string_view name = {}) {
    return result(add_layer("neg", {x}, {}, name), 0);
  }

  // Per image and class, boxes from the best score down; one that overlaps a chosen one by more than the limit
  // (intersection over union, rounded to f32) is left out. Of equal scores the least index comes first. Source: ONNX
  // operator NonMaxSuppression.
  // boxes: [images, boxes, 4], float
  // scores: [images, classes, boxes], the dtype of boxes
  // most_overlap: a float scalar; absent: 0 (optional)
  // least_score: a float scalar: only greater scores count; absent: all do (optional)
  layers::NonMaxSuppressionResults non_max_suppression(const Operand& boxes, const Operand& scores, const Operand& most_overlap, const Operand& least_score, const layers::NonMaxSuppression& with, std::string_view name = {}) {
    const auto all = add_layer("non_max_suppression", {boxes, scores, most_overlap, least_score}, {{"most", with.most.value()}, {"centre", with.centre}}, name);
    return {result(all, 0), result(all, 1)};
  }

  // The indices of all elements that are not 0, in row-major order, one column each. Source: ONNX operator NonZero;
  // torch.nonzero transposed.
  // x: any dtype and shape
  Result<NetworkTensor> nonzero(const Operand& x, const layers::Nonzero& with, std::string_view name = {}) {
    return result(add_layer("nonzero", {x}, {{"count", with.count.value()}}, name), 0);
  }

  // Logical not.
  // x: any shape
  Result<NetworkTensor> not_(const Operand& x, std::string_view name = {}) {
    return result(add_layer("not", {x}, {}, name), 0);
  }

  // A new axis along which the element that the index names is `on` and all others are `off`; an index outside marks
  // none. Source: ONNX operator OneHot; torch.nn.functional.one_hot.
  // indices: i64 or i32; negative ones count from the end
  // values: [2], any dtype: off, on
  Result<NetworkTensor> one_hot(const Operand& indices, const Operand& values, const layers::OneHot& with, std::string_view name = {}) {
    return result(add_layer("one_hot", {indices, values}, {{"depth", with.depth.value()}, {"axis", with.axis.value()}}, name), 0);
  }

  // Logical or.
  // x: any shape
  // y: a shape that broadcasts with x
  Result<NetworkTensor> or_(const Operand& x, const Operand& y, std::string_view name = {}) {
    return result(add_layer("or", {x, y}, {}, name), 0);
  }

  // Adds pre[a] elements before and post[a] after the elements of each axis a; a negative entry removes as many.
  // Modes, for a b c d: constant gives v v [a b c d] v v, reflect c b [a b c d] c b, edge a a [a b c d] d d, wrap c d
  // [a b c d] a b.
  // Reflections repeat where the padding is longer than the operand. Places are mirrored and wrapped by the whole
  // axis, also where its
  // other end is cropped. Source: ONNX operator Pad; numpy.pad; torch.nn.functional.pad (circular is wrap, replicate
  // is edge).
  // x: any rank and dtype
  Result<NetworkTensor> pad(const Operand& x, const layers::Pad& with, std::string_view name = {}) {
    return result(add_layer("pad", {x}, {{"pre", with.pre.value()}, {"post", with.post.value()}, {"mode", with.mode}, {"value", with.value}}, name), 0);
  }

  // x to the power y; integers wrap, and negative exponents of integers truncate 1 / x^-y.
  // x: any shape
  // y: a shape that broadcasts with x
  Result<NetworkTensor> pow(const Operand& x, const Operand& y, std::string_view name = {}) {
    return result(add_layer("pow", {x, y}, {}, name), 0);
  }

  // x where x >= 0, else y * x: y is the slope.
  // x: any shape
  // y: a shape that broadcasts with x
  Result<NetworkTensor> prelu(const Operand& x, const Operand& y, std::string_view name = {}) {
    return result(add_layer("prelu", {x, y}, {}, name), 0);
  }

  // Seeded noise: element i, in row-major order, follows from the seed and i alone, so every run, thread count and
  // machine draws the same numbers.
  // The generator is Philox 4x32-10.
  Result<NetworkTensor> random(const layers::Random& with, std::string_view name = {}) {
    return result(add_layer("random", {}, {{"shape", with.shape.value()}, {"dtype", with.dtype}, {"distribution", with.distribution}, {"a", with.a}, {"b", with.b}, {"key", with.key.value()}}, name), 0);
  }

  // The integers start, start + step, start + 2 * step, …
  Result<NetworkTensor> range(const layers::Range& with, std::string_view name = {}) {
    return result(add_layer("range", {}, {{"start", with.start.value()}, {"count", with.count.value()}, {"step", with.step.value()}}, name), 0);
  }

  // 1 / x.
  // x: any shape
  Result<NetworkTensor> reciprocal(const Operand& x, std::string_view name = {}) {
    return result(add_layer("reciprocal", {x}, {}, name), 0);
  }

  // The sum of absolute values.
  // x: any shape
  Result<NetworkTensor> reduce_l1(const Operand& x, const layers::ReduceL1& with, std::string_view name = {}) {
    return result(add_layer("reduce_l1", {x}, {{"axes", with.axes.value()}, {"keep", with.keep}}, name), 0);
  }

  // The square root of the sum of squares; integers truncate.
  // x: any shape
  Result<NetworkTensor> reduce_l2(const Operand& x, const layers::ReduceL2& with, std::string_view name = {}) {
    return result(add_layer("reduce_l2", {x}, {{"axes", with.axes.value()}, {"keep", with.keep}}, name), 0);
  }

  // The logarithm of the sum; integers truncate.
  // x: any shape
  Result<NetworkTensor> reduce_log_sum(const Operand& x, const layers::ReduceLogSum& with, std::string_view name = {}) {
    return result(add_layer("reduce_log_sum", {x}, {{"axes", with.axes.value()}, {"keep", with.keep}}, name), 0);
  }

  // log(sum(exp(x))), without overflow; integers truncate.
  // x: any shape
  Result<NetworkTensor> reduce_log_sum_exp(const Operand& x, const layers::ReduceLogSumExp& with, std::string_view name = {}) {
    return result(add_layer("reduce_log_sum_exp", {x}, {{"axes", with.axes.value()}, {"keep", with.keep}}, name), 0);
  }

  // The greatest element, of bool whether any; NaN if one is; the least value there is of nothing.
  // x: any shape
  Result<NetworkTensor> reduce_max(const Operand& x, const layers::ReduceMax& with, std::string_view name = {}) {
    return result(add_layer("reduce_max", {x}, {{"axes", with.axes.value()}, {"keep", with.keep}}, name), 0);
  }

  // The sum divided by the number of elements; integers truncate; NaN (integers: 0) of nothing.
  // x: any shape
  Result<NetworkTensor> reduce_mean(const Operand& x, const layers::ReduceMean& with, std::string_view name = {}) {
    return result(add_layer("reduce_mean", {x}, {{"axes", with.axes.value()}, {"keep", with.keep}}, name), 0);
  }

  // The least element, of bool whether all; NaN if one is; the greatest value there is of nothing.
  // x: any shape
  Result<NetworkTensor> reduce_min(const Operand& x, const layers::ReduceMin& with, std::string_view name = {}) {
    return result(add_layer("reduce_min", {x}, {{"axes", with.axes.value()}, {"keep", with.keep}}, name), 0);
  }

  // The product; 1 of nothing.
  // x: any shape
  Result<NetworkTensor> reduce_prod(const Operand& x, const layers::ReduceProd& with, std::string_view name = {}) {
    return result(add_layer("reduce_prod", {x}, {{"axes", with.axes.value()}, {"keep", with.keep}}, name), 0);
  }

  // The sum; 0 of nothing.
  // x: any shape
  Result<NetworkTensor> reduce_sum(const Operand& x, const layers::ReduceSum& with, std::string_view name = {}) {
    return result(add_layer("reduce_sum", {x}, {{"axes", with.axes.value()}, {"keep", with.keep}}, name), 0);
  }

  // The sum of squares.
  // x: any shape
  Result<NetworkTensor> reduce_sum_square(const Operand& x, const layers::ReduceSumSquare& with, std::string_view name = {}) {
    return result(add_layer("reduce_sum_square", {x}, {{"axes", with.axes.value()}, {"keep", with.keep}}, name), 0);
  }

  // max(x, 0); NaN stays NaN.
  // x: any shape
  Result<NetworkTensor> relu(const Operand& x, std::string_view name = {}) {
    return result(add_layer("relu", {x}, {}, name), 0);
  }

  // The same elements in row-major order under another shape. There are no codes 0 and -1: sizes are written out.
  // x: any dtype and shape
  Result<NetworkTensor> reshape(const Operand& x, const layers::Reshape& with, std::string_view name = {}) {
    return result(add_layer("reshape", {x}, {{"shape", with.shape.value()}}, name), 0);
  }

  // Resampling along every axis whose size or scale changes, one axis after the other. Result place x has the operand
  // coordinate
  // half_pixel (x + 0.5)/scale - 0.5 pytorch_half_pixel the same, 0 if the result has one place asymmetric x/scale
  // align_corners x*(I-1)/(O-1) tf_half_pixel_for_nn (x + 0.5)/scale
  // half_pixel_symmetric I/2*(1 - O/(scale*I)) + (x + 0.5)/scale - 0.5
  // tf_crop_and_resize start*(I-1) + x*(end - start)*(I-1)/(O-1), or the middle of the crop if O = 1
  // with scale = O/I unless `scales` says otherwise. nearest takes the element at the rounded coordinate; linear
  // weighs the two, cubic the
  // four nearest elements; beyond the ends the last element repeats. Integers are rounded to the nearest, ties to
  // even.
  // Source: ONNX operator Resize; torch.nn.functional.interpolate.
  // x: any rank; numeric, or bool in mode nearest
  Result<NetworkTensor> resize(const Operand& x, const layers::Resize& with, std::string_view name = {}) {
    return result(add_layer("resize", {x}, {{"sizes", with.sizes.value()}, {"scales", with.scales}, {"mode", with.mode}, {"coordinate", with.coordinate}, {"nearest", with.nearest}, {"cubic_coefficient", with.cubic_coefficient}, {"exclude_outside", with.exclude_outside}, {"antialias", with.antialias}, {"roi", with.roi}, {"extrapolation", with.extrapolation}}, name), 0);
  }

  // h' = f(X + h·R + Wb + Rb).
  // X is the operand x at the step: the input times its weights already, [directions · gates · hidden] for each of
  // the batch. R, Wb, Rb are the blocks of r and of the bias for the gate. The reverse direction goes through the
  // steps from the last to the first. Beyond its length a sequence of the batch keeps its state and gives zeros.
  // Source: ONNX operators RNN-22, LSTM-22, GRU-22.
  // x: [steps, batch, directions · gates · hidden], float
  // r: [directions, gates · hidden, hidden]
  // bias: [directions, 2 · gates · hidden]: Wb of all gates, then Rb (optional)
  // lengths: [batch], i32: steps of each sequence of the batch; absent: all (optional)
  // initial_h: [directions, batch, hidden]; absent: 0 (optional)
  layers::RnnResults rnn(const Operand& x, const Operand& r, const Operand& bias = {}, const Operand& lengths = {}, const Operand& initial_h = {}, const layers::Rnn& with = {}, std::string_view name = {}) {
    const auto all = add_layer("rnn", {x, r, bias, lengths, initial_h}, {{"direction", with.direction}, {"activations", with.activations}, {"alphas", with.alphas}, {"betas", with.betas}, {"clip", with.clip}}, name);
    return {result(all, 0), result(all, 1)};
  }

  // The mean (or greatest product) of bilinear samples in each cell of each region; a cell without samples is 0. mode
  // `max` takes the greatest of the four weighted neighbours, as ONNX has it. Source: ONNX operator RoiAlign;
  // torchvision.ops.roi_align.
  // x: (N, C, H, W), float
  // rois: [regions, 4], the dtype of x: left, top, right, bottom
  // images: [regions], i64 or i32: which image of x each region is of
  Result<NetworkTensor> roi_align(const Operand& x, const Operand& rois, const Operand& images, const layers::RoiAlign& with, std::string_view name = {}) {
    return result(add_layer("roi_align", {x, rois, images}, {{"height", with.height.value()}, {"width", with.width.value()}, {"scale", with.scale}, {"samples", with.samples}, {"half_pixel", with.half_pixel}, {"mode", with.mode}}, name), 0);
  }

  // The greatest element in each cell of each region, whose corners are rounded to pixels; a cell without elements is
  // 0. Source: ONNX operator MaxRoiPool; torchvision.ops.roi_pool.
  // x: (N, C, H, W), float
  // rois: [regions, 5], the dtype of x: the image's number, left, top, right, bottom
  Result<NetworkTensor> roi_max_pool(const Operand& x, const Operand& rois, const layers::RoiMaxPool& with, std::string_view name = {}) {
    return result(add_layer("roi_max_pool", {x, rois}, {{"height", with.height.value()}, {"width", with.width.value()}, {"scale", with.scale}}, name), 0);
  }

  // The nearest integer, ties to even.
  // x: any shape
  Result<NetworkTensor> round(const Operand& x, std::string_view name = {}) {
    return result(add_layer("round", {x}, {}, name), 0);
  }

  // A copy y of x with y[i, …, indices[i, j, …], …] = updates[i, j, …]: one index per update, along an axis.
  // Source: ONNX operator ScatterElements; torch.scatter.
  // x: any dtype, rank >= 1
  // indices: i64 or i32; negative ones count from the end; one out of range is an error at run time
  // updates: the dtype of x, the shape of indices
  Result<NetworkTensor> scatter_elements(const Operand& x, const Operand& indices, const Operand& updates, const layers::ScatterElements& with, std::string_view name = {}) {
    return result(add_layer("scatter_elements", {x, indices, updates}, {{"axis", with.axis.value()}, {"reduction", with.reduction}}, name), 0);
  }

  // A copy y of x in which the slab y[indices[i, 0], indices[i, 1], …, :] is updates[i, :]. Source: ONNX operator
  // ScatterND; x[…] = updates in PyTorch.
  // x: any dtype, rank >= 1
  // indices: i64 or i32; negative ones count from the end; one out of range is an error at run time
  // updates: the dtype of x; the shape of indices without its last axis, then the axes of x that are not indexed
  Result<NetworkTensor> scatter_nd(const Operand& x, const Operand& indices, const Operand& updates, const layers::ScatterNd& with = {}, std::string_view name = {}) {
    return result(add_layer("scatter_nd", {x, indices, updates}, {{"reduction", with.reduction}}, name), 0);
  }

  // gamma * x where x > 0, else gamma * alpha * (exp(x) - 1).
  // x: any shape
  Result<NetworkTensor> selu(const Operand& x, const layers::Selu& with = {}, std::string_view name = {}) {
    return result(add_layer("selu", {x}, {{"alpha", with.alpha}, {"gamma", with.gamma}}, name), 0);
  }

  // x moved up by y bits; zeros come in.
  // x: any shape
  // y: a shape that broadcasts with x
  Result<NetworkTensor> shift_left(const Operand& x, const Operand& y, std::string_view name = {}) {
    return result(add_layer("shift_left", {x, y}, {}, name), 0);
  }

  // x moved down by y bits; copies of the sign come in if the dtype has one.
  // x: any shape
  // y: a shape that broadcasts with x
  Result<NetworkTensor> shift_right(const Operand& x, const Operand& y, std::string_view name = {}) {
    return result(add_layer("shift_right", {x, y}, {}, name), 0);
  }

  // 1 / (1 + exp(-x)).
  // x: any shape
  Result<NetworkTensor> sigmoid(const Operand& x, std::string_view name = {}) {
    return result(add_layer("sigmoid", {x}, {}, name), 0);
  }

  // 1, 0 or -1 with the sign of x; NaN stays NaN.
  // x: any shape
  Result<NetworkTensor> sign(const Operand& x, std::string_view name = {}) {
    return result(add_layer("sign", {x}, {}, name), 0);
  }

  // x * sigmoid(x).
  // x: any shape
  Result<NetworkTensor> silu(const Operand& x, std::string_view name = {}) {
    return result(add_layer("silu", {x}, {}, name), 0);
  }

  // The sine of x in radians.
  // x: any shape
  Result<NetworkTensor> sin(const Operand& x, std::string_view name = {}) {
    return result(add_layer("sin", {x}, {}, name), 0);
  }

  // The hyperbolic sine.
  // x: any shape
  Result<NetworkTensor> sinh(const Operand& x, std::string_view name = {}) {
    return result(add_layer("sinh", {x}, {}, name), 0);
  }

  // Evenly spaced elements: element i along an axis is x[start + i * step]. Nothing is clamped: every element must
  // exist. A negative step walks backwards.
  // x: any dtype and shape
  Result<NetworkTensor> slice(const Operand& x, const layers::Slice& with, std::string_view name = {}) {
    return result(add_layer("slice", {x}, {{"start", with.start.value()}, {"size", with.size.value()}, {"step", with.step.value()}}, name), 0);
  }

  // y = exp(x) / sum(exp(x)), the sum over the elements along one axis.
  // Source: ONNX operators Softmax-13 and LogSoftmax-13; torch.softmax.
  // x: any rank above 0, float
  Result<NetworkTensor> softmax(const Operand& x, const layers::Softmax& with, std::string_view name = {}) {
    return result(add_layer("softmax", {x}, {{"axis", with.axis.value()}}, name), 0);
  }

  // log(1 + exp(x)).
  // x: any shape
  Result<NetworkTensor> softplus(const Operand& x, std::string_view name = {}) {
    return result(add_layer("softplus", {x}, {}, name), 0);
  }

  // x / (1 + |x|).
  // x: any shape
  Result<NetworkTensor> softsign(const Operand& x, std::string_view name = {}) {
    return result(add_layer("softsign", {x}, {}, name), 0);
  }

  // Each block of pixels becomes channels of one pixel: y[n, (i*b + j)*C + c, h, w] = x[n, c, h*b + i, w*b + j].
  // The inverse of depth_to_space in mode dcr. Source: ONNX operator SpaceToDepth.
  // x: (N, C, H*b, W*b)
  Result<NetworkTensor> space_to_depth(const Operand& x, const layers::SpaceToDepth& with, std::string_view name = {}) {
    return result(add_layer("space_to_depth", {x}, {{"block", with.block.value()}}, name), 0);
  }

  // The square root; NaN below 0.
  // x: any shape
  Result<NetworkTensor> sqrt(const Operand& x, std::string_view name = {}) {
    return result(add_layer("sqrt", {x}, {}, name), 0);
  }

  // x * x.
  // x: any shape
  Result<NetworkTensor> square(const Operand& x, std::string_view name = {}) {
    return result(add_layer("square", {x}, {}, name), 0);
  }

  // x - y; integers wrap.
  // x: any shape
  // y: a shape that broadcasts with x
  Result<NetworkTensor> sub(const Operand& x, const Operand& y, std::string_view name = {}) {
    return result(add_layer("sub", {x, y}, {}, name), 0);
  }

  // The tangent of x in radians.
  // x: any shape
  Result<NetworkTensor> tan(const Operand& x, std::string_view name = {}) {
    return result(add_layer("tan", {x}, {}, name), 0);
  }

  // The hyperbolic tangent.
  // x: any shape
  Result<NetworkTensor> tanh(const Operand& x, std::string_view name = {}) {
    return result(add_layer("tanh", {x}, {}, name), 0);
  }

  // x where x > alpha, else 0.
  // x: any shape
  Result<NetworkTensor> thresholded_relu(const Operand& x, const layers::ThresholdedRelu& with = {}, std::string_view name = {}) {
    return result(add_layer("thresholded_relu", {x}, {{"alpha", with.alpha}}, name), 0);
  }

  // x repeated along every axis, whole copies side by side.
  // x: any dtype and shape
  Result<NetworkTensor> tile(const Operand& x, const layers::Tile& with, std::string_view name = {}) {
    return result(add_layer("tile", {x}, {{"repeats", with.repeats.value()}}, name), 0);
  }

  // The k greatest (or least) elements along an axis, best first, and their indices. Of equals the one with the least
  // index comes first; NaN counts as greater than all. Source: ONNX operator TopK; torch.topk.
  // x: any number dtype, rank >= 1
  layers::TopKResults top_k(const Operand& x, const layers::TopK& with, std::string_view name = {}) {
    const auto all = add_layer("top_k", {x}, {{"axis", with.axis.value()}, {"k", with.k.value()}, {"largest", with.largest}}, name);
    return {result(all, 0), result(all, 1)};
  }

  // The axes in another order: axis i of the result is axis order[i] of x.
  // x: any dtype and shape
  Result<NetworkTensor> transpose(const Operand& x, const layers::Transpose& with, std::string_view name = {}) {
    return result(add_layer("transpose", {x}, {{"order", with.order.value()}}, name), 0);
  }

  // The upper (or lower) triangle of each matrix, with its diagonal k; the rest is 0. k = 0 is the main diagonal, k >
  // 0 lies above it. Source: ONNX operator Trilu; torch.triu, torch.tril.
  // x: any dtype, (…, rows, columns)
  Result<NetworkTensor> trilu(const Operand& x, const layers::Trilu& with = {}, std::string_view name = {}) {
    return result(add_layer("trilu", {x}, {{"k", with.k}, {"upper", with.upper}}, name), 0);
  }

  // The different elements of x, or its different slices along an axis; where each is first, which one each slice is,
  // and how often it is there. Source: ONNX operator Unique; torch.unique.
  // x: any dtype
  layers::UniqueResults unique(const Operand& x, const layers::Unique& with, std::string_view name = {}) {
    const auto all = add_layer("unique", {x}, {{"count", with.count.value()}, {"axis", with.axis}, {"sorted", with.sorted}}, name);
    return {result(all, 0), result(all, 1), result(all, 2), result(all, 3)};
  }

  // x where the condition holds, else y; all three broadcast by numpy's rule.
  // condition: bool
  // x: any dtype
  // y: the dtype of x
  Result<NetworkTensor> where(const Operand& condition, const Operand& x, const Operand& y, std::string_view name = {}) {
    return result(add_layer("where", {condition, x, y}, {}, name), 0);
  }

  // Logical exclusive or.
  // x: any shape
  // y: a shape that broadcasts with x
  Result<NetworkTensor> xor_(const Operand& x, const Operand& y, std::string_view name = {}) {
    return result(add_layer("xor", {x, y}, {}, name), 0);
  }

 protected:
  using NetworkBase::NetworkBase;
};

}  // namespace polyphase::api
// NOLINTEND(readability-identifier-naming)
