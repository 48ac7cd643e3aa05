// The rows of one CPU cluster, family by family; catalogue.cpp joins them in order of preference.
#pragma once

#include <deque>
#include <string>

#include "backends/cpu/cluster_kernels.h"
#include "kernel/row.h"

namespace polyphase::cpu {

// Rows are pointed at for the life of the program: a deque never moves them.
using RowList = std::deque<Row>;

void add_attention_rows(const ClusterKernels& kernels, RowList& rows);
void add_block_rows(const ClusterKernels& kernels, RowList& rows);
void add_conv_rows(const ClusterKernels& kernels, RowList& rows);
void add_separable_rows(const ClusterKernels& kernels, RowList& rows);
void add_move_rows(const ClusterKernels& kernels, RowList& rows);
void add_elementwise_rows(const ClusterKernels& kernels, RowList& rows);
void add_number_element_rows(const ClusterKernels& kernels, RowList& rows);
void add_number_product_rows(const ClusterKernels& kernels, RowList& rows);
void add_number_normalize_rows(const ClusterKernels& kernels, RowList& rows);
void add_lookup_rows(const ClusterKernels& kernels, RowList& rows);
void add_pool_rows(const ClusterKernels& kernels, RowList& rows);
void add_normalize_rows(const ClusterKernels& kernels, RowList& rows);
void add_recurrence_rows(const ClusterKernels& kernels, RowList& rows);
void add_reduce_rows(const ClusterKernels& kernels, RowList& rows);
void add_gather_rows(const ClusterKernels& kernels, RowList& rows);
void add_grid_sample_rows(const ClusterKernels& kernels, RowList& rows);
void add_fourier_rows(const ClusterKernels& kernels, RowList& rows);
void add_matmul_rows(const ClusterKernels& kernels, RowList& rows);
void add_softmax_rows(const ClusterKernels& kernels, RowList& rows);
void add_region_rows(const ClusterKernels& kernels, RowList& rows);
void add_resample_rows(const ClusterKernels& kernels, RowList& rows);
void add_running_extreme_rows(const ClusterKernels& kernels, RowList& rows);
void add_running_sum_rows(const ClusterKernels& kernels, RowList& rows);
void add_scatter_rows(const ClusterKernels& kernels, RowList& rows);
void add_selection_rows(const ClusterKernels& kernels, RowList& rows);

// Words of refusal that several rows share; empty: the rule holds.
std::string needs_f32(const StepDesc& desc);           // every present operand and result is f32
std::string needs_f32_operands(const StepDesc& desc);  // those of the operator, not of what follows it, are f32
std::string needs_wide(const StepDesc& desc);          // the operand is not f16 or bf16, which are computed in f32
std::string needs_unfused(const StepDesc& desc);       // no beginnings, no endings
std::string needs_plain(const StepDesc& desc);         // that, and every present operand and result is row-major

// The entry points of a cluster; only to be called where it runs.
const ClusterKernels& kernels_of(Cluster cluster);
// Lanes of a cluster's vectors.
int vector_width(Cluster cluster);

// Dense row-major elements as [outer, count, inner], where `axis` has `count`; outer is 0 if there are none.
struct AroundAxis {
  int64_t outer;
  int64_t count;
  int64_t inner;
};
AroundAxis around_axis(const TensorDesc& desc, std::size_t axis);

// Bytes of all operands and results of a step of known sizes, over the memory rate of a core: the cost of moving.
double moving_seconds(const StepDesc& desc);
// Elements of the result of a step of known sizes.
double result_elements(const StepDesc& desc);

}  // namespace polyphase::cpu
