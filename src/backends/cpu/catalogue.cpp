// The table of CPU rows, built once per cluster.
#include "backends/cpu/catalogue.h"

#include <deque>
#include <iterator>

#include "backends/cpu/rows/row_list.h"
#include "base/lasting.h"

namespace polyphase::cpu {
namespace {

class ClusterRows {
 public:
  explicit ClusterRows(Cluster cluster) {
    constexpr void (*families[])(const ClusterKernels&, RowList&) = {
        add_conv_rows,
        add_separable_rows,
        add_move_rows,
        add_elementwise_rows,
        add_pool_rows,
        add_normalize_rows,
        add_recurrence_rows,
        add_reduce_rows,
        add_softmax_rows,
        add_resample_rows,
        add_grid_sample_rows,
        add_fourier_rows,
        add_matmul_rows,
        add_gather_rows,
        add_lookup_rows,
        add_scatter_rows,
        add_selection_rows,
        add_running_sum_rows,
        add_running_extreme_rows,
        add_region_rows,
        add_number_element_rows,
        add_number_normalize_rows,
        add_number_product_rows,
        add_attention_rows,
        add_block_rows,
    };
    for (const auto family : families) family(kernels_of(cluster), rows_);
    for (const Row& row : rows_) pointers_.push_back(&row);
  }
  const std::vector<const Row*>& pointers() const { return pointers_; }

 private:
  RowList rows_;
  std::vector<const Row*> pointers_;
};

}  // namespace

const std::vector<const Row*>& rows_of(Cluster cluster) {
  using Lists = std::deque<ClusterRows>;
  static const Lists& rows = lasting(Lists(std::begin(all_clusters), std::end(all_clusters)));
  return rows[static_cast<std::size_t>(cluster)].pointers();
}

Target target_of(Cluster cluster, bool portable, const Catalogue& catalogue) {
  Target target;
  target.cluster = cluster;
  target.portable = portable;
  target.catalogue = &catalogue;
  return target;
}

}  // namespace polyphase::cpu
