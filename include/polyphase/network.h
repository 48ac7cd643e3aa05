// Polyphase: a network written layer by layer, without a model file.
//
//   Network network;
//   auto x = network.add_input("x", DType::f32, {"N", 64, "H", "W"});
//   auto w = network.add_constant(weights, "up.weight");                       // (64, 32, 3, 3)
//   auto up = network.add_deconvolution_nd(x, w, {}, {.stride = {2}, .pre_padding = {1}, .output_padding = {1}}, "up");
//   auto y = network.relu(up);
//   if (auto marked = network.mark_output(y, "y"); !marked.ok()) …             // or any Error on the way
//   Result<Engine> engine = compile(network);
//
// Every layer of docs/operators.md is a method (polyphase/network_layers.h). A wrong call gives an Error at once, with
// the layer's name; layers that take its result hand that Error on. A Network is a handle: copies are the same network.
// It is for one thread at a time. docs/guides/network.md is the guide.
#pragma once

#include <functional>

#include "polyphase/network_layers.h"
#include "polyphase/weight_file.h"

namespace polyphase::api {

struct NetworkOptions {
  std::string name = "network";
  // Operands of different dtypes are refused, with both named, where they are promoted otherwise: nothing casts but the
  // layer `cast`.
  bool strongly_typed = false;
  // "tensorrt": what that engine would refuse is refused at the call, with the rule and what to write instead (limits()
  // has them). Empty: nobody's limits.
  std::string limits = {};
  // Whose operators add_plugin knows. Two of one name or with one claim: add_plugin and compile say so.
  std::vector<Plugin> plugins = {};
};

enum class PaddingMode : unsigned char {
  explicit_padding,  // pre_padding and post_padding
  valid,             // none
  same_upper,        // convolution: size / stride, rounded up; deconvolution: size * stride; the odd one at the end
  same_lower,        // the same with the odd one at the beginning
};

// Lists of one entry count for every spatial axis. Paddings of a convolution are zeros around its operand, of a
// deconvolution places cut off its result; negative ones do the opposite.
struct ConvolutionSettings {
  std::vector<std::int64_t> kernel = {};  // the weight tells it; if given, it must say the same
  std::vector<std::int64_t> stride = {1};
  std::vector<std::int64_t> dilation = {1};
  std::int64_t groups = 1;
  std::vector<Size> pre_padding = {0};
  std::vector<Size> post_padding = {};  // empty: as pre_padding
  PaddingMode padding_mode = PaddingMode::explicit_padding;
  // How operand and result lie, by the letters of their axes: NCHW, NHWC, any other order, or channels in blocks as in
  // NCHW16c, (N, ceil(C/16), H, W, 16), whose last block zeros fill; sound has N, C, W and volumes N, C, D, H, W.
  // Empty: channels-first, and out_layout as data_layout. kernel_layout: OIHW, HWIO, any order of the letters. The
  // network works as it likes in between: nothing is transposed that need not be.
  std::string data_layout = {};
  std::string kernel_layout = {};
  std::string out_layout = {};
};
struct DeconvolutionSettings {
  std::vector<std::int64_t> kernel = {};
  std::vector<std::int64_t> stride = {1};
  std::vector<std::int64_t> dilation = {1};
  std::int64_t groups = 1;
  std::vector<Size> pre_padding = {0};
  std::vector<Size> post_padding = {};
  PaddingMode padding_mode = PaddingMode::explicit_padding;
  // Places added at the end: as PyTorch's, from 0 to below the stride or the dilation.
  std::vector<Size> output_padding = {};
  // Instead of it: the result's size, spatial axes or all of them; another tensor's shape() makes this result as large.
  std::vector<Size> output_size = {};
  // As of a convolution; the weight's own order is IOHW.
  std::string data_layout = {};
  std::string kernel_layout = {};
  std::string out_layout = {};
};

// What the body of a loop gives after each trip: whether to go on (absent: yes), the carried tensors of the next trip,
// and rows, which the loop stacks over its trips.
struct LoopTurn {
  Operand again = {};
  std::vector<Operand> carried = {};
  std::vector<Operand> rows = {};
};

namespace nn {
class Parameter;  // polyphase/nn_module.h
}

class Network : public NetworkLayers {
 public:
  explicit Network(const NetworkOptions& options = {});
  // The network of a layer's operands, for functions that add layers to it. Errors: that of an operand;
  // invalid_argument (no tensor is among them, or tensors of several networks).
  static Result<Network> of(const std::vector<Operand>& operands);

  // A size that inputs name may be given a range first; the options of compile can do it later.
  Result<void> set_range(const std::string& size, SizeRange range);
  // A name in `sizes` is a symbolic size, known only when the engine runs: {"N", 3, "2*H", "W"}.
  Result<NetworkTensor> add_input(std::string_view name, DType dtype, const std::vector<Size>& sizes);
  // Elements are not copied if they lie row-major. A Tensor with an owner keeps them; a view's memory, and that of a
  // Tensor without, must stay until the network is compiled and gone.
  Result<NetworkTensor> add_constant(const Tensor& tensor, std::string_view name = {});
  Result<NetworkTensor> add_constant(const TensorView& view, std::string_view name = {});

  // The file's tensor of this name, under this name: the same tensor again where it was added before. The engine does
  // not need the file.
  Result<NetworkTensor> add_weight(const WeightFile& file, std::string_view name);

  // (N, C, spatial...) or (C, spatial...) with one to three spatial axes; the weight is (Cout, C/groups, kernel...).
  Result<NetworkTensor> add_convolution_nd(const Operand& x, const Operand& weight, const Operand& bias = {},
                                           const ConvolutionSettings& settings = {}, std::string_view name = {});
  // The same with the weight (C, Cout/groups, kernel...). The result has (size - 1) * stride + (kernel - 1) * dilation
  // + 1 - pre_padding - post_padding + output_padding places along each axis.
  Result<NetworkTensor> add_deconvolution_nd(const Operand& x, const Operand& weight, const Operand& bias = {},
                                             const DeconvolutionSettings& settings = {}, std::string_view name = {});

  // An operator of a plugin of the options by its name, "stylegan.upfirdn2d"; all its results, in order. An operand
  // that is absent is an Operand without anything. Nothing is promoted.
  Result<std::vector<NetworkTensor>> add_plugin(std::string_view op, std::vector<Operand> operands,
                                                AttributeList attributes = {}, std::string_view name = {});

  // Each function writes the layers of one branch and gives its results, which must agree in number, dtypes and ranks.
  // Tensors of outside may be used in it; those of inside go on as results only.
  using Branch = std::function<Result<std::vector<Operand>>()>;
  Result<std::vector<NetworkTensor>> add_if(const Operand& condition, const Branch& then_branch,
                                            const Branch& else_branch, std::string_view name = {});
  // Runs the body trip_count times (absent: no limit) while the condition holds (absent: it does). Results: the carried
  // tensors after the last trip, then the stacked rows. The function is called again where a carried tensor turns out
  // to change its sizes.
  using LoopBody =
      std::function<Result<LoopTurn>(const NetworkTensor& iteration, const std::vector<NetworkTensor>& carried)>;
  Result<std::vector<NetworkTensor>> add_loop(const Operand& trip_count, const Operand& condition,
                                              const std::vector<Operand>& carried, const LoopBody& body,
                                              std::string_view name = {});

  // Names of tensors, inputs and constants among them, are unique.
  Result<void> set_name(const Operand& tensor, std::string_view name);
  // An empty name: the tensor's.
  Result<void> mark_output(const Operand& tensor, std::string_view name = {});

  // Layers that `write` adds compute their floats in this dtype. The casts are layers named LAYER/cast_OPERAND. Scopes
  // nest; the innermost counts. Errors: that of `write`; invalid_argument (a strongly typed network, no float).
  Result<void> with_precision(DType dtype, const std::function<Result<void>()>& write);

  // The same in two calls; what is left open at the end of a body ends with it.
  Result<void> push_precision(DType dtype);
  void pop_precision();

  // The network as text, as `polyphase inspect` and docs/operators.md write it; large constants are left out.
  std::string text() const;

 private:
  friend struct NetworkCompiler;
  friend class nn::Parameter;
  // The elements as a constant of this name; for the same key and elements the same constant. The network keeps both.
  Result<NetworkTensor> add_parameter(const std::shared_ptr<const void>& key, const Tensor& elements,
                                      std::optional<DType> dtype, std::string_view name);
  explicit Network(std::shared_ptr<NetworkState> state) : NetworkLayers(std::move(state)) {}
};

// Compiles what has been written so far; the network stays as it is, and may grow. shapes and dims of the options put
// numbers or ranges in place of its symbolic sizes.
Result<Engine> compile(const Network& network, const CompileOptions& options = {});

// One operator of docs/operators.md, for programs that write layers by name.
struct OperatorInfo {
  struct Operand {
    std::string name = {};
    std::string doc = {};
    bool optional = false;
    bool variadic = false;
  };
  struct Attribute {
    std::string name = {};
    std::string kind = {};  // boolean, integer, real, word, dtype, integers, reals, dim, dims, tensor
    std::string doc = {};
    bool required = false;
    std::string default_text = {};  // as docs/operators.md has it
    std::vector<std::string> words = {};
  };
  std::string name = {};
  std::string doc = {};
  std::vector<Operand> operands = {};
  std::vector<Operand> results = {};
  std::vector<Attribute> attributes = {};
  int bodies = 0;  // graphs that a layer of it owns
};
std::vector<OperatorInfo> operators();

// One rule of NetworkOptions::limits.
struct LimitInfo {
  std::string target = {};    // "tensorrt"
  std::string versions = {};  // that the rule is known of
  std::string name = {};      // "deconvolution-1d"
  std::string op = {};        // the operator; empty: of all
  std::string rule = {};
  std::string rewrite = {};
  std::string source = {};
};
std::vector<LimitInfo> limits();

}  // namespace polyphase::api
