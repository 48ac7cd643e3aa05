// Sparse tensors made dense: values at sorted, unique places, zero elsewhere.
//
//   indices i64 [n]: place in row-major order      indices i64 [n, rank]: one coordinate per axis
#include <cstring>

#include "onnx/onnx.pb.h"
#include "wire/onnx_tensor.h"

namespace polyphase::wire {
namespace {

Error damaged_sparse(std::string message) {
  return Error{ErrorCode::invalid_model, "a sparse tensor " + std::move(message),
               "The model is damaged: export it again, with dense weights."};
}

// Row-major place of entry i, or an Error.
Result<std::int64_t> place_of_entry(const Tensor& indices, std::int64_t i, const std::vector<std::int64_t>& sizes) {
  const auto* numbers = indices.view().as<std::int64_t>();
  const auto rank = static_cast<std::int64_t>(sizes.size());
  if (indices.view().rank == 1) {
    std::int64_t total = 1;
    for (const std::int64_t size : sizes) total *= size;
    if (numbers[i] < 0 || numbers[i] >= total)
      return damaged_sparse("names place " + std::to_string(numbers[i]) + " of " + std::to_string(total) + ".");
    return numbers[i];
  }
  std::int64_t place = 0;
  for (std::int64_t axis = 0; axis < rank; ++axis) {
    const std::int64_t at = numbers[i * rank + axis];
    const std::int64_t size = sizes[static_cast<std::size_t>(axis)];
    if (at < 0 || at >= size)
      return damaged_sparse("names index " + std::to_string(at) + " on axis " + std::to_string(axis) + " of size " +
                            std::to_string(size) + ".");
    place = place * size + at;
  }
  return place;
}

}  // namespace

Result<Tensor> take_sparse_tensor(onnx::SparseTensorProto& proto, ExternalData& external, DenseBudget& budget) {
  TRY(const Tensor values, take_tensor(*proto.mutable_values(), external));
  TRY(const Tensor indices, take_tensor(*proto.mutable_indices(), external));
  TRY(const auto sizes, checked_sizes(proto.dims().data(), proto.dims_size(), values.dtype()));
  const auto rank = static_cast<std::int64_t>(sizes.size());
  if (values.view().rank != 1)
    return damaged_sparse("has values of rank " + std::to_string(values.view().rank) + "; they must be a list.");
  const std::int64_t count = values.view().sizes[0];
  const TensorDesc& index = indices.view();
  const bool fits =
      indices.dtype() == DType::i64 && ((index.rank == 1 && index.sizes[0] == count) ||
                                        (index.rank == 2 && index.sizes[0] == count && index.sizes[1] == rank));
  if (!fits)
    return damaged_sparse("has " + std::to_string(count) + " values but indices of type " + indices.type().text() +
                          "; they must be INT64, one per value.");
  const TensorDesc desc = TensorDesc::row_major(values.dtype(), sizes);
  const std::int64_t bytes =
      desc.empty() ? 0 : desc.element_count() * static_cast<std::int64_t>(size_bytes(values.dtype()));
  if (bytes > budget.left_bytes) {
    return Error{ErrorCode::out_of_memory,
                 "a sparse tensor would take " + std::to_string(bytes) + " bytes as a dense one, more than the limit.",
                 "Sparse tensors may take 1 GiB in all; store large weights dense."};
  }
  budget.left_bytes -= bytes;
  TRY(Tensor out, Tensor::allocate(desc));
  const std::size_t width = size_bytes(values.dtype());
  std::int64_t before = -1;
  for (std::int64_t i = 0; i < count; ++i) {
    TRY(const std::int64_t place, place_of_entry(indices, i, sizes));
    if (place <= before) return damaged_sparse("has indices that are not in ascending order, or one of them twice.");
    std::memcpy(out.view().data + static_cast<std::size_t>(place) * width,
                values.view().data + static_cast<std::size_t>(i) * width, width);
    before = place;
  }
  return out;
}

}  // namespace polyphase::wire
