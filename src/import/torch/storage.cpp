// Tensors out of storages.
#include "import/torch/storage.h"

#include <algorithm>

#include "base/shape.h"

namespace polyphase {
namespace {

// The last element that a stride reaches lies within `available`; each sum is checked: the numbers come from the file.
bool reaches_inside(const StoredLayout& layout, std::int64_t available) {
  std::int64_t last = layout.offset;
  bool empty = false;
  if (layout.offset < 0 || layout.offset > available) return false;
  for (std::size_t i = 0; i < layout.sizes.size(); ++i) {
    if (layout.sizes[i] < 0 || layout.strides[i] < 0) return false;
    if (layout.sizes[i] == 0) {
      empty = true;
      continue;
    }
    std::int64_t step = 0;
    if (__builtin_mul_overflow(layout.sizes[i] - 1, layout.strides[i], &step) ||
        __builtin_add_overflow(last, step, &last))
      return false;
  }
  return empty || last < available;
}

}  // namespace

Error damaged_archive(std::string message) {
  return Error{ErrorCode::corrupt, std::move(message),
               "The file is damaged or not finished: copy it again, or save the program again."};
}

Result<Tensor> tensor_in_storage(const std::shared_ptr<Buffer>& bytes, const StoredLayout& layout,
                                 const std::string& shown) {
  if (layout.sizes.size() != layout.strides.size() || layout.sizes.size() > static_cast<std::size_t>(max_rank))
    return damaged_archive(shown + " has " + std::to_string(layout.sizes.size()) + " sizes and " +
                           std::to_string(layout.strides.size()) + " strides");
  const auto element = static_cast<std::int64_t>(size_bytes(layout.dtype));
  const auto available = static_cast<std::int64_t>(bytes->size_bytes()) / element;
  if (!reaches_inside(layout, available))
    return damaged_archive(shown + " reaches beyond its storage of " + std::to_string(bytes->size_bytes()) + " bytes");
  TensorDesc desc = TensorDesc::row_major(layout.dtype, layout.sizes);
  std::copy(layout.strides.begin(), layout.strides.end(), desc.strides.begin());
  const TensorView in_file(desc, bytes->data() + layout.offset * element);
  if (desc.is_row_major()) return Tensor(bytes, in_file);
  // A small storage can stand for a huge tensor by strides of 0.
  if (desc.element_count() > available)
    return Error{ErrorCode::unsupported, shown + " repeats its elements by strides of 0.",
                 "Call contiguous() on it before the export."};
  TRY(Tensor tensor, Tensor::allocate(layout.dtype, layout.sizes));
  copy_elements(in_file, tensor.view());
  return tensor;
}

}  // namespace polyphase
