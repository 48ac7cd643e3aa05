// Tensors and views at the border.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "api/state.h"

namespace polyphase::api {

namespace {

TensorView plain_view(DType dtype, const void* data, std::vector<std::int64_t> sizes) {
  return {dtype, std::move(sizes), {}, const_cast<void*>(data)};
}

}  // namespace

TensorView view(const float* data, std::vector<std::int64_t> sizes) {
  return plain_view(DType::f32, data, std::move(sizes));
}
TensorView view(const double* data, std::vector<std::int64_t> sizes) {
  return plain_view(DType::f64, data, std::move(sizes));
}
TensorView view(const std::int32_t* data, std::vector<std::int64_t> sizes) {
  return plain_view(DType::i32, data, std::move(sizes));
}
TensorView view(const std::int64_t* data, std::vector<std::int64_t> sizes) {
  return plain_view(DType::i64, data, std::move(sizes));
}
TensorView view(const std::uint8_t* data, std::vector<std::int64_t> sizes) {
  return plain_view(DType::u8, data, std::move(sizes));
}
TensorView view(const bool* data, std::vector<std::int64_t> sizes) {
  return plain_view(DType::boolean, data, std::move(sizes));
}

Tensor Access::tensor(const polyphase::Tensor& from) {
  Tensor out;
  out.owner_ = from.buffer();
  out.view_.dtype = from.dtype();
  out.view_.sizes = from.sizes();
  out.view_.data = from.view().data;
  return out;
}

Tensor Access::tensor(TensorView view, std::shared_ptr<void> owner) {
  Tensor out;
  out.view_ = std::move(view);
  out.owner_ = std::move(owner);
  return out;
}

Result<Tensor> Tensor::allocate(DType dtype, std::vector<std::int64_t> sizes) {
  return without_throwing([&]() -> Result<Tensor> {
    TRY(const polyphase::Tensor tensor, polyphase::Tensor::allocate(dtype, sizes));
    return Access::tensor(tensor);
  });
}

Result<Tensor> Tensor::borrow(TensorView view, std::shared_ptr<void> owner) {
  return without_throwing([&]() -> Result<Tensor> {
    TRY(const polyphase::TensorView checked, inner_view(view, "the memory given"));
    static_cast<void>(checked);
    return Access::tensor(std::move(view), std::move(owner));
  });
}

std::int64_t Tensor::element_count() const {
  std::int64_t count = 1;
  for (const std::int64_t size : view_.sizes) count *= size;
  return count;
}

std::size_t Tensor::size_bytes() const {
  return static_cast<std::size_t>(element_count()) * polyphase::size_bytes(view_.dtype);
}

Result<polyphase::TensorView> inner_view(const TensorView& given, const Subject& what) {
  if (given.sizes.size() > max_rank) {
    return Error{
        ErrorCode::invalid_argument,
        what + " has rank " + std::to_string(given.sizes.size()) + "; the highest is " + std::to_string(max_rank) + ".",
        "Reshape the tensor."};
  }
  if (static_cast<int>(given.dtype) >= dtype_count)
    return Error{ErrorCode::invalid_argument, what + " has an unknown dtype.", "Use a value of DType."};
  std::int64_t bytes = static_cast<std::int64_t>(size_bytes(given.dtype));
  for (const std::int64_t size : given.sizes) {
    if (size < 0 || __builtin_mul_overflow(bytes, std::max<std::int64_t>(size, 1), &bytes)) {
      return Error{ErrorCode::invalid_argument,
                   what + " has the size " + std::to_string(size) + ", negative or too large.",
                   "Sizes are 0 or more, and all bytes count below 2^63."};
    }
  }
  if (!given.strides.empty() && given.strides.size() != given.sizes.size()) {
    return Error{ErrorCode::invalid_argument,
                 what + " has " + std::to_string(given.strides.size()) + " strides for " +
                     std::to_string(given.sizes.size()) + " axes.",
                 "Give one stride per axis, counted in elements, or none for a dense tensor."};
  }
  polyphase::TensorView out(TensorDesc::row_major(given.dtype, given.sizes), static_cast<std::byte*>(given.data));
  if (!given.strides.empty()) {
    std::int64_t reach = 0;
    for (std::size_t i = 0; i < given.sizes.size(); ++i) {
      const std::int64_t stride = given.strides[i];
      std::int64_t span = 0;
      if (stride == INT64_MIN || __builtin_mul_overflow(std::abs(stride), given.sizes[i], &span) ||
          __builtin_add_overflow(reach, span, &reach)) {
        return Error{ErrorCode::invalid_argument, what + " has the stride " + std::to_string(stride) + ", too large.",
                     "Strides are counted in elements, not in bytes."};
      }
    }
    std::copy(given.strides.begin(), given.strides.end(), out.strides.begin());
  }
  if (out.data == nullptr && !out.empty())
    return Error{ErrorCode::invalid_argument, what + " has no memory: its data is null.",
                 "Set data to the first element."};
  return out;
}

// Sufficient, not necessary: axis by axis outwards, each stride steps over all that the axes within it touch.
Result<void> expect_writable(const polyphase::TensorView& view, const Subject& what) {
  if (view.empty()) return {};
  std::array<std::pair<std::int64_t, std::int64_t>, max_rank> axes{};  // stride without sign, size
  std::size_t count = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(view.rank) && count < axes.size(); ++i) {
    if (view.sizes[i] > 1) axes[count++] = {std::abs(view.strides[i]), view.sizes[i]};
  }
  std::sort(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(count));
  std::int64_t touched = 1;
  for (std::size_t i = 0; i < count; ++i) {
    if (axes[i].first < touched) {
      return Error{ErrorCode::invalid_argument,
                   what + " overlaps itself: a stride of " + std::to_string(axes[i].first) + " is too small.",
                   "Each element needs a place of its own to be written to."};
    }
    touched += axes[i].first * (axes[i].second - 1);
  }
  return {};
}

Result<std::vector<std::string>> parse_sizes(std::string_view text) {
  std::vector<std::string> out;
  if (text.empty()) return out;
  const auto refuse = [&](const std::string& why) {
    return Error{ErrorCode::invalid_argument, "the sizes '" + std::string(text) + "' cannot be read: " + why + ".",
                 "Write numbers or names with x between them: 1x3xHxW."};
  };
  for (std::size_t at = 0;;) {
    // An x ends a piece unless it stands inside a name: "maxH" is one.
    std::size_t end = at;
    const bool number = at < text.size() && text[at] >= '0' && text[at] <= '9';
    while (end < text.size() && (number ? text[end] >= '0' && text[end] <= '9' : text[end] != 'x')) ++end;
    const std::string_view piece = text.substr(at, end - at);
    if (piece.empty()) return refuse("a piece is empty");
    for (const char c : piece) {
      const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
      if (!plain) return refuse("'" + std::string(1, c) + "' is neither a digit nor a letter");
    }
    out.emplace_back(piece);
    if (end == text.size()) return out;
    if (text[end] != 'x') return refuse("'" + std::string(1, text[end]) + "' stands behind a number");
    at = end + 1;
  }
}

}  // namespace polyphase::api
