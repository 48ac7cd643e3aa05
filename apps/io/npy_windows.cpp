// Windows of .npy files: rows that lie together are one call of the system each.
#include "io/npy_windows.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "io/try.h"

namespace polyphase::io {
namespace {

using Sizes = std::vector<std::int64_t>;

std::int64_t product_from(const Sizes& sizes, std::size_t axis) {
  std::int64_t product = 1;
  for (std::size_t i = axis; i < sizes.size(); ++i) product *= sizes[i];
  return product;
}

// f(index of the run's first element in the whole, number of the run) for every run of elements of the window that lie
// together in the whole; gives how many elements such a run has.
template <typename F>
Result<void> for_each_run(const Sizes& whole, std::span<const std::int64_t> first, const Sizes& window, F&& f) {
  if (product_from(window, 0) == 0) return {};
  std::size_t outer = window.size();  // axes before it are gone through
  while (outer > 0 && (outer == window.size() || window[outer] == whole[outer])) --outer;
  const std::int64_t count = product_from(window, outer);
  Sizes index(outer, 0);
  for (std::int64_t run = 0;; ++run) {
    std::int64_t at = 0;
    for (std::size_t axis = 0; axis < window.size(); ++axis)
      at = at * whole[axis] + first[axis] + (axis < outer ? index[axis] : 0);
    IO_TRY_VOID(f(at, run, count));
    std::size_t axis = outer;
    while (axis > 0 && ++index[axis - 1] == window[axis - 1]) index[--axis] = 0;
    if (axis == 0) return {};
  }
}

}  // namespace

Result<NpyWindows> NpyWindows::open(const std::string& path) {
  IO_TRY(File file, open_file(path));
  const off_t end = ::fseeko(file.get(), 0, SEEK_END) == 0 ? ::ftello(file.get()) : -1;
  if (end < 0) return Error{ErrorCode::io, "'" + path + "' is not a regular file.", "Give the path of a file."};
  std::rewind(file.get());
  const ByteSource source = [&](std::span<std::byte> bytes) -> Result<void> {
    if (std::fread(bytes.data(), 1, bytes.size(), file.get()) == bytes.size()) return {};
    return Error{ErrorCode::io, "'" + path + "' became shorter while it was read.", "Copy or write the file again."};
  };
  IO_TRY(NpyHeader header, read_npy_header(source, static_cast<std::uint64_t>(end), path));
  return NpyWindows(path, std::move(file), std::move(header));
}

bool NpyWindows::is_plain() const {
  return !header_.big_endian && (!header_.fortran || header_.sizes.size() < 2) && header_.dtype != DType::boolean;
}

Result<void> NpyWindows::read(std::span<const std::int64_t> first, const api::TensorView& window) const {
  const auto width = static_cast<std::int64_t>(size_bytes(header_.dtype));
  return for_each_run(header_.sizes, first, window.sizes,
                      [&](std::int64_t at, std::int64_t run, std::int64_t count) -> Result<void> {
                        auto* to = static_cast<std::byte*>(window.data) + run * count * width;
                        auto from = static_cast<off_t>(header_.size_bytes) + at * width;
                        for (std::int64_t left = count * width; left > 0;) {
                          const ssize_t got = ::pread(::fileno(file_.get()), to, static_cast<std::size_t>(left), from);
                          if (got < 0 && errno == EINTR) continue;
                          if (got <= 0) {
                            return Error{ErrorCode::io, "'" + path_ + "' became shorter while it was read.",
                                         "Copy or write the file again."};
                          }
                          to += got;
                          from += got;
                          left -= got;
                        }
                        return {};
                      });
}

Result<NewNpyWindows> NewNpyWindows::create(const std::string& path, DType dtype, std::vector<std::int64_t> sizes) {
  IO_TRY(NewFile target, NewFile::create(path));
  File file(std::fopen(target.path().c_str(), "wb"));
  if (file == nullptr) return write_error(path, errno);
  const std::string header = npy_header(dtype, sizes);
  if (std::fwrite(header.data(), 1, header.size(), file.get()) != header.size() || std::fflush(file.get()) != 0)
    return write_error(path, errno);
  return NewNpyWindows(std::move(target), path, std::move(file), header.size(), std::move(sizes));
}

Result<void> NewNpyWindows::write(std::span<const std::int64_t> first, const api::TensorView& window) {
  IO_TRY(const api::Tensor dense, dense_copy(window));
  const auto width = static_cast<std::int64_t>(size_bytes(window.dtype));
  return for_each_run(sizes_, first, window.sizes,
                      [&](std::int64_t at, std::int64_t run, std::int64_t count) -> Result<void> {
                        const auto* from = dense.as<const std::byte>() + run * count * width;
                        auto to = static_cast<off_t>(header_bytes_) + at * width;
                        for (std::int64_t left = count * width; left > 0;) {
                          const ssize_t put = ::pwrite(::fileno(file_.get()), from, static_cast<std::size_t>(left), to);
                          if (put < 0 && errno == EINTR) continue;
                          if (put <= 0) return write_error(path_, errno);
                          from += put;
                          to += put;
                          left -= put;
                        }
                        return {};
                      });
}

Result<void> NewNpyWindows::finish() {
  if (std::fclose(file_.release()) != 0) return write_error(path_, errno);
  return target_.publish();
}

Result<api::Tensor> dense_copy(const api::TensorView& view) {
  if (view.strides.empty()) return api::Tensor::borrow(view);
  IO_TRY(api::Tensor out, api::Tensor::allocate(view.dtype, view.sizes));
  const std::size_t rank = view.sizes.size();
  const auto width = static_cast<std::int64_t>(size_bytes(view.dtype));
  const std::int64_t count = rank == 0 ? 1 : view.sizes[rank - 1];
  const std::int64_t step = rank == 0 ? 1 : view.strides[rank - 1];
  if (out.element_count() == 0) return out;
  Sizes index(rank == 0 ? 0 : rank - 1, 0);
  auto* to = out.as<std::byte>();
  for (;;) {
    std::int64_t at = 0;
    for (std::size_t axis = 0; axis < index.size(); ++axis) at += index[axis] * view.strides[axis];
    const auto* from = static_cast<const std::byte*>(view.data) + at * width;
    if (step == 1) {
      std::memcpy(to, from, static_cast<std::size_t>(count * width));
      to += count * width;
    } else {
      for (std::int64_t i = 0; i < count; ++i, to += width)
        std::memcpy(to, from + i * step * width, static_cast<std::size_t>(width));
    }
    std::size_t axis = index.size();
    while (axis > 0 && ++index[axis - 1] == view.sizes[axis - 1]) index[--axis] = 0;
    if (axis == 0) return out;
  }
}

}  // namespace polyphase::io
