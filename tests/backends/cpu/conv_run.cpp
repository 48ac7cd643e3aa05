// Binding kernels to test data.
#include "backends/cpu/conv_run.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "backends/cpu/kernels/conv_overlap.h"
#include "backends/cpu/rows/conv_costs.h"
#include "base/float16.h"

namespace polyphase::cpu::testing {
namespace {

constexpr float untouched = -12345.75F;

// 64-byte aligned memory of exactly the size asked for, so that a sanitizer sees one element too many.
struct AlignedBytes {
  AlignedBytes(int64_t size, uint32_t word)
      : bytes(static_cast<std::byte*>(std::aligned_alloc(64, static_cast<size_t>((size + 63) / 64 * 64 + 64)))) {
    std::fill_n(reinterpret_cast<uint32_t*>(bytes.get()), (size + 63) / 64 * 16, word);
  }
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte, Free> bytes;
  float* floats() const { return reinterpret_cast<float*>(bytes.get()); }
};

// Vectors that begin at a cache line, large ones on huge pages, as an engine's buffers do.
template <class T>
struct CacheLineAllocator {
  using value_type = T;
  T* allocate(size_t n) {
    constexpr size_t huge_page = size_t{2} << 20;
    const size_t alignment = n * sizeof(T) < 2 * huge_page ? 64 : huge_page;
    const size_t bytes = (n * sizeof(T) + alignment - 1) / alignment * alignment;
    void* const memory = std::aligned_alloc(alignment, bytes);
    if (memory != nullptr && alignment == huge_page) static_cast<void>(madvise(memory, bytes, MADV_HUGEPAGE));
    return static_cast<T*>(memory);
  }
  void deallocate(T* p, size_t) { std::free(p); }
  bool operator==(const CacheLineAllocator&) const { return true; }
};
using AlignedFloats = std::vector<float, CacheLineAllocator<float>>;

template <class F>
void each_element(int64_t batch, int64_t channels, const int64_t (&extent)[3], const ImageStrides& strides, F f) {
  int64_t i = 0;
  for (int64_t n = 0; n < batch; ++n) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t d = 0; d < extent[0]; ++d) {
        for (int64_t h = 0; h < extent[1]; ++h) {
          for (int64_t w = 0; w < extent[2]; ++w) {
            f(i++, n * strides.batch + c * strides.channel + d * strides.axis[0] + h * strides.axis[1] +
                       w * strides.axis[2]);
          }
        }
      }
    }
  }
}

int64_t span_of(int64_t batch, int64_t channels, const int64_t (&extent)[3], const ImageStrides& s) {
  int64_t last = -1;
  each_element(batch, channels, extent, s, [&](int64_t, int64_t at) { last = std::max(last, at); });
  return last + 1;
}

// An image half as wide, which begins so many elements past a line of the caches.
class NarrowImage {
 public:
  NarrowImage(const AlignedFloats& from, DType type, int64_t past)
      : type_(type), past_(static_cast<size_t>(past)), bits_(from.size() + past_) {
    for (size_t i = 0; i < from.size(); ++i) {
      const auto value = static_cast<double>(from[i]);
      bits_[i + past_] = type == DType::f16 ? Half(value).bits : BFloat16(value).bits;
    }
  }
  uint16_t* data() { return bits_.data() + past_; }
  float value(size_t i) const {
    Half half;
    BFloat16 upper;
    half.bits = upper.bits = bits_[i + past_];
    return type_ == DType::f16 ? static_cast<float>(half) : static_cast<float>(upper);
  }

 private:
  DType type_;
  size_t past_;
  std::vector<uint16_t, CacheLineAllocator<uint16_t>> bits_;
};

class Bound : public BoundKernel {
 public:
  Bound(const ConvCase& c, const ConvData& data, const Layouts& layouts)
      : shape_(c.shape),
        layouts_(layouts),
        in_channels_(shape_.groups * shape_.in_channels),
        out_channels_(shape_.groups * shape_.out_channels) {
    shape_.types = layouts.types;
    in_strides_ = image_strides(in_channels_, shape_.in, layouts.in_planar, layouts.extra);
    out_strides_ = image_strides(out_channels_, shape_.out, layouts.out_planar, layouts.extra);
    in_.resize(static_cast<size_t>(span_of(shape_.batch, in_channels_, shape_.in, in_strides_)));
    each_element(shape_.batch, in_channels_, shape_.in, in_strides_,
                 [&](int64_t i, int64_t at) { in_[static_cast<size_t>(at)] = data.in[static_cast<size_t>(i)]; });
    out_.resize(static_cast<size_t>(span_of(shape_.batch, out_channels_, shape_.out, out_strides_)), untouched);
    bias_ = data.bias;
    if (!data.added.empty()) {
      added_.resize(out_.size());
      each_element(shape_.batch, out_channels_, shape_.out, out_strides_, [&](int64_t i, int64_t at) {
        added_[static_cast<size_t>(at)] = data.added[static_cast<size_t>(i)];
      });
      endings_.operands[0] = out_strides_;
      if (data.added_in_bf16) narrow_added_.emplace(added_, DType::bf16, layouts.narrow_past);
    }
    const auto end_with = [this](const EndingStep& step) { endings_.steps[endings_.count++] = step; };
    const EndingStep sum = {data.added_in_bf16 ? EndingKind::add_bf16 : EndingKind::add, 0, 0, 0};
    if (!data.added.empty() && !data.adds_last) end_with(sum);
    const bool clips = data.activation == EndingKind::clip;
    if (data.activation != EndingKind::keep)
      end_with({data.activation, -1, clips ? -clip_bound : leaky_slope, clip_bound});
    slopes_ = data.slopes;
    endings_.operands[1] = {0, 1, {0, 0, 0}};
    if (!slopes_.empty()) end_with({EndingKind::prelu, 1, 0, 0});
    if (!data.added.empty() && data.adds_last) end_with(sum);
    weight_strides_.axis[2] = 1;
    weight_strides_.axis[1] = shape_.kernel[2];
    weight_strides_.axis[0] = shape_.kernel[1] * shape_.kernel[2];
    weight_strides_.second = shape_.kernel_points();
    weight_strides_.first = shape_.kernel_points() * (shape_.transposed ? shape_.out_channels : shape_.in_channels);
  }

  std::vector<float> result() override {
    for (size_t i = 0; narrow_out_.has_value() && i < out_.size(); ++i) {
      const float value = narrow_out_->value(i);
      out_[i] = value == rounded(untouched, shape_.types.out) ? untouched : value;
    }
    std::vector<float> rest(out_.begin(), out_.end());
    std::vector<float> result(static_cast<size_t>(shape_.batch * out_channels_ * shape_.out_points()));
    each_element(shape_.batch, out_channels_, shape_.out, out_strides_, [&](int64_t i, int64_t at) {
      result[static_cast<size_t>(i)] = out_[static_cast<size_t>(at)];
      rest[static_cast<size_t>(at)] = untouched;
    });
    for (const float x : rest) {
      if (x != untouched) {
        std::fprintf(stderr, "a kernel wrote between the pixels of its output\n");
        std::abort();
      }
    }
    return result;
  }

 protected:
  void make_room(int64_t packed_floats, int64_t shared_bytes, int64_t scratch_bytes, int workers) {
    packed_ = std::make_unique<AlignedBytes>(packed_floats * 4, huge_word);
    shared_ = std::make_unique<AlignedBytes>(shared_bytes, layouts_.scratch);
    for (int i = 0; i < workers; ++i)
      scratch_.push_back(std::make_unique<AlignedBytes>(scratch_bytes, layouts_.scratch));
    pointers_ = {in_.data(),  packed_->floats(), bias_.empty() ? nullptr : bias_.data(),
                 out_.data(), shared_->floats(), operands_};
    operands_[0] = narrow_added_.has_value() ? reinterpret_cast<const float*>(narrow_added_->data()) : added_.data();
    operands_[1] = slopes_.data();
    if (is_narrow(shape_.types.in)) {
      narrow_in_.emplace(in_, shape_.types.in, layouts_.narrow_past);
      pointers_.in = reinterpret_cast<const float*>(narrow_in_->data());
    }
    if (is_narrow(shape_.types.out)) {
      narrow_out_.emplace(out_, shape_.types.out, layouts_.narrow_past);
      pointers_.out = reinterpret_cast<float*>(narrow_out_->data());
    }
  }

  ConvShape shape_;
  Layouts layouts_;
  int64_t in_channels_;
  int64_t out_channels_;
  ImageStrides in_strides_;
  ImageStrides out_strides_;
  WeightStrides weight_strides_ = {};
  AlignedFloats in_;
  AlignedFloats out_;
  AlignedFloats added_;
  std::optional<NarrowImage> narrow_added_;
  std::vector<float> slopes_;
  const float* operands_[2] = {};
  EndingProgram endings_ = {};
  std::optional<NarrowImage> narrow_in_;
  std::optional<NarrowImage> narrow_out_;
  std::vector<float> bias_;
  std::unique_ptr<AlignedBytes> packed_;
  std::unique_ptr<AlignedBytes> shared_;
  std::vector<std::unique_ptr<AlignedBytes>> scratch_;
  ConvPointers pointers_ = {};
};

// A kernel by its plan type and its six functions.
template <class P, auto plan_function, auto packed_floats, auto pack, auto phase_count, auto tile_count, auto entry,
          auto seconds>
class BoundTo : public Bound {
 public:
  BoundTo(const ConvCase& c, const ConvData& data, const Layouts& layouts, const ClusterKernels& kernels, int workers)
      : Bound(c, data, layouts), kernels_(kernels) {
    const int width = kernels.vector_width;
    plan_ = plan_function(shape_, in_strides_, out_strides_, endings_, c.bias, width);
    make_room(packed_floats(shape_, width), plan_.shared_bytes, plan_.scratch_bytes, workers);
    pack(shape_, width, data.weights.data(), weight_strides_, {}, packed_->floats());
  }
  int phases() const override { return phase_count(plan_); }
  int64_t tiles(int phase) const override { return tile_count(plan_, phase); }
  void run(int phase, int64_t tile, int worker) override {
    (kernels_.*entry)(plan_, pointers_, phase, tile, scratch_[static_cast<size_t>(worker)]->bytes.get());
  }
  double estimated_seconds() const override {
    return seconds(shape_, kernels_.vector_width, layouts_.in_planar, layouts_.out_planar);
  }

 protected:
  const ClusterKernels& kernels_;
  P plan_;
};

class BoundPairs : public Bound {
 public:
  BoundPairs(const ConvCase& c, const ConvData& data, const Layouts& layouts, const std::string& cluster, int workers)
      : Bound(c, data, layouts),
        cluster_(cluster_from_name(cluster).value_or(Cluster::amx)),
        kernels_(cluster_kernels(cluster)) {
    plan_ = plan_conv_pairs(shape_, in_strides_, out_strides_, endings_, c.bias, kernels_.pair_unit);
    make_room(conv_pairs_packed_bytes(shape_) / 4 + 1, plan_.shared_bytes, plan_.scratch_bytes, workers);
    pack_conv_pairs(shape_, data.weights.data(), weight_strides_, {}, reinterpret_cast<uint16_t*>(packed_->floats()));
  }
  int phases() const override { return conv_pairs_phases(plan_); }
  int64_t tiles(int phase) const override { return conv_pairs_tiles(plan_, phase); }
  void run(int phase, int64_t tile, int worker) override {
    kernels_.conv_pairs(plan_, pointers_, phase, tile, scratch_[static_cast<size_t>(worker)]->bytes.get());
  }
  double estimated_seconds() const override {
    return conv_pairs_seconds(shape_, cluster_, layouts_.in_planar, layouts_.out_planar);
  }

 private:
  Cluster cluster_;  // whose estimates are asked
  const ClusterKernels& kernels_;
  ConvPairsPlan plan_;
};

using BoundGemm = BoundTo<ConvGemmPlan, plan_conv_gemm, conv_gemm_packed_floats, pack_conv_gemm, conv_gemm_phases,
                          conv_gemm_tiles, &ClusterKernels::conv_gemm, conv_gemm_seconds>;
using BoundDepthwise =
    BoundTo<ConvDepthwisePlan, plan_conv_depthwise, conv_depthwise_packed_floats, pack_conv_depthwise,
            conv_depthwise_phases, conv_depthwise_tiles, &ClusterKernels::conv_depthwise, conv_depthwise_seconds>;
using BoundPixels = BoundTo<ConvPixelsPlan, plan_conv_pixels, conv_pixels_packed_floats, pack_conv_pixels,
                            conv_pixels_phases, conv_pixels_tiles, &ClusterKernels::conv_pixels, conv_pixels_seconds>;
using BoundDisjoint =
    BoundTo<ConvDisjointPlan, plan_conv_disjoint, conv_disjoint_packed_floats, pack_conv_disjoint, conv_disjoint_phases,
            conv_disjoint_tiles, &ClusterKernels::conv_disjoint, conv_disjoint_seconds>;
using BoundOverlap =
    BoundTo<ConvOverlapPlan, plan_conv_overlap, conv_overlap_packed_floats, pack_conv_overlap, conv_overlap_phases,
            conv_overlap_tiles, &ClusterKernels::conv_overlap, conv_overlap_seconds>;
using BoundOverlapLast =
    BoundTo<ConvOverlapPlan, plan_conv_overlap_last, conv_overlap_last_packed_floats, pack_conv_overlap_last,
            conv_overlap_phases, conv_overlap_tiles, &ClusterKernels::conv_overlap, conv_overlap_last_seconds>;
using BoundWinograd =
    BoundTo<ConvWinogradPlan, plan_conv_winograd, conv_winograd_packed_floats, pack_conv_winograd, conv_winograd_phases,
            conv_winograd_tiles, &ClusterKernels::conv_winograd, conv_winograd_seconds>;

// The same in bf16.
template <class Bound, auto Unit>
class InPairs : public Bound {
 public:
  InPairs(const ConvCase& c, const ConvData& data, const Layouts& layouts, const ClusterKernels& kernels, int workers)
      : Bound(in_pairs(c), data, layouts, kernels, workers) {
    this->plan_.pairs = kernels.pair_unit->*Unit;
  }

 private:
  static ConvCase in_pairs(ConvCase c) {
    c.shape.products = Products::pairs;
    return c;
  }
};
using BoundDisjointPairs = InPairs<BoundDisjoint, &PairUnit::multiply_panel>;
using BoundPixelsPairs = InPairs<BoundPixels, &PairUnit::pixels_tiles>;
using BoundWinogradPairs = InPairs<BoundWinograd, &PairUnit::winograd>;

class BoundWinogradFours : public BoundWinograd {
 public:
  BoundWinogradFours(const ConvCase& c, const ConvData& data, const Layouts& layouts, const ClusterKernels& kernels,
                     int workers)
      : BoundWinograd(in_fours(c), data, layouts, kernels, workers) {}

 private:
  static ConvCase in_fours(ConvCase c) {
    c.shape.fours = true;
    return c;
  }
};

bool is_point(const ConvShape& shape) {
  return shape.transposed && shape.in_points() == 1 && shape.dilation[0] * shape.dilation[1] * shape.dilation[2] == 1;
}

bool takes_pixels(const ConvShape& shape) {
  return conv_pixels_takes(shape) && ConvAxis(shape, 2).phases() * shape.out_channels <= most_pixels_columns;
}

}  // namespace

float rounded(double value, DType type) {
  if (type == DType::f16) return static_cast<float>(Half(value));
  return type == DType::bf16 ? static_cast<float>(BFloat16(value)) : static_cast<float>(value);
}

std::optional<size_t> first_difference(const std::vector<float>& got, const std::vector<double>& want, DType type) {
  const size_t both = std::min(got.size(), want.size());
  for (size_t i = 0; i < both; ++i) {
    if (got[i] != rounded(want[i], type)) return i;
  }
  if (got.size() != want.size()) return both;
  return std::nullopt;
}

std::vector<std::string> kernels_for(const ConvCase& c, const Layouts& layouts) {
  std::vector<std::string> names;
  const ConvShape& shape = c.shape;
  if (is_point(shape)) names.emplace_back("point");
  if (c.shape.in_channels == 1 && c.shape.groups > 1) names.emplace_back("depthwise");
  const bool pixels = takes_pixels(c.shape);
  const bool pixels_first =
      pixels && conv_pixels_seconds(c.shape, 16, true, true) < conv_gemm_seconds(c.shape, 16, true, true);
  if (pixels_first) names.emplace_back("pixels");
  names.emplace_back("gemm");
  if (pixels && !pixels_first) names.emplace_back("pixels");
  if (conv_disjoint_takes(shape)) names.emplace_back("disjoint");
  if (conv_overlap_takes(shape)) {
    names.emplace_back("overlap");
    if (!layouts.in_planar && layouts.types.in == DType::f32) names.emplace_back("overlap_last");
  }
  if (conv_winograd_takes(shape)) names.emplace_back("winograd");
  return names;
}

bool runs_in_fours(ConvCase c) {
  c.shape.fours = true;
  return conv_winograd_takes(c.shape);
}

std::vector<std::string> pair_kernels_for(const ConvCase& c, const std::string& cluster) {
  std::vector<std::string> names;
  if (is_point(c.shape)) names.emplace_back("point_pairs");
  if (*conv_pairs_refuses(c.shape) == '\0') names.emplace_back("pairs");
  const bool in_vectors = cluster_kernels(cluster).pair_unit->multiply_panel != nullptr && c.shape.in_channels > 1;
  ConvShape in_pairs = c.shape;
  in_pairs.products = Products::pairs;
  if (in_vectors && conv_disjoint_takes(c.shape)) names.emplace_back("disjoint_pairs");
  if (in_vectors && takes_pixels(in_pairs)) names.emplace_back("pixels_pairs");
  if (in_vectors && conv_winograd_takes(c.shape)) names.emplace_back("winograd_pairs");
  return names;
}

bool runs_pairs(const std::string& kernel, const ConvCase& c, const std::string& cluster) {
  const std::vector<std::string> names = pair_kernels_for(c, cluster);
  return std::find(names.begin(), names.end(), kernel) != names.end();
}

void run_tiles(BoundKernel& kernel) {
  for (int phase = 0; phase < kernel.phases(); ++phase) {
    for (int64_t tile = 0; tile < kernel.tiles(phase); ++tile) kernel.run(phase, tile, 0);
  }
}

std::unique_ptr<BoundKernel> bind_kernel(const std::string& kernel, const ConvCase& c, const ConvData& data,
                                         const Layouts& layouts, const std::string& cluster, int workers) {
  const ClusterKernels& kernels = cluster_kernels(cluster);
  if (kernel.starts_with("point")) {  // as the row of that name does it: any stride will do
    ConvCase at_kernel_stride = c;
    std::copy_n(c.shape.kernel, 3, at_kernel_stride.shape.stride);
    if (kernel == "point_pairs") return std::make_unique<BoundPairs>(at_kernel_stride, data, layouts, cluster, workers);
    return std::make_unique<BoundGemm>(at_kernel_stride, data, layouts, kernels, workers);
  }
  if (kernel == "depthwise") return std::make_unique<BoundDepthwise>(c, data, layouts, kernels, workers);
  if (kernel == "disjoint") return std::make_unique<BoundDisjoint>(c, data, layouts, kernels, workers);
  if (kernel == "overlap") return std::make_unique<BoundOverlap>(c, data, layouts, kernels, workers);
  if (kernel == "overlap_last") return std::make_unique<BoundOverlapLast>(c, data, layouts, kernels, workers);
  if (kernel == "disjoint_pairs") return std::make_unique<BoundDisjointPairs>(c, data, layouts, kernels, workers);
  if (kernel == "pixels_pairs") return std::make_unique<BoundPixelsPairs>(c, data, layouts, kernels, workers);
  if (kernel == "winograd_pairs") return std::make_unique<BoundWinogradPairs>(c, data, layouts, kernels, workers);
  if (kernel == "winograd_fours") return std::make_unique<BoundWinogradFours>(c, data, layouts, kernels, workers);
  if (kernel == "winograd") return std::make_unique<BoundWinograd>(c, data, layouts, kernels, workers);
  if (kernel == "pairs") return std::make_unique<BoundPairs>(c, data, layouts, cluster, workers);
  if (kernel == "pixels") return std::make_unique<BoundPixels>(c, data, layouts, kernels, workers);
  return std::make_unique<BoundGemm>(c, data, layouts, kernels, workers);
}

std::vector<float> run_kernel(const std::string& kernel, const ConvCase& c, const ConvData& data,
                              const Layouts& layouts, const std::string& cluster) {
  const auto bound = bind_kernel(kernel, c, data, layouts, cluster, 1);
  run_tiles(*bound);
  return bound->result();
}

}  // namespace polyphase::cpu::testing
