// A walk over the outer fields of a model finds what is large; the rest is copied as it lies.
#include "wire/large_data.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "wire/onnx_fields.h"

namespace polyphase::wire {
namespace {

constexpr std::int64_t window_bytes = 1 << 14;

struct Field {
  std::uint32_t number = 0;
  std::uint32_t type = 0;
  std::int64_t begin = 0;     // its tag
  std::int64_t contents = 0;  // behind tag and length
  std::int64_t end = 0;

  std::int64_t length() const { return end - contents; }
  bool is(std::uint32_t wanted) const { return number == wanted && type == length_delimited; }
};

using MaybeField = std::optional<Field>;
using MaybeNumber = std::optional<std::uint64_t>;

// An initialiser and its raw data, which are large.
struct Large {
  int place = 0;
  Field tensor;
  Field data;

  std::int64_t length_without() const { return tensor.length() - (data.end - data.begin); }
  std::string head_without() const {
    return message_head(graph_initializer, static_cast<std::uint64_t>(length_without()));
  }
  std::int64_t saved() const {
    return tensor.end - tensor.begin - static_cast<std::int64_t>(head_without().size()) - length_without();
  }
};

class Walk {
 public:
  Walk(const ModelBytes& model, std::int64_t large_bytes) : model_(model), large_bytes_(large_bytes) {}

  Result<MaybeSkeleton> skeleton() {
    TRY(const bool regular, find());
    if (!regular || large_.empty()) return MaybeSkeleton();
    std::int64_t graph_length = graph_->length();
    for (const Large& large : large_) graph_length -= large.saved();
    Skeleton out;
    TRY_VOID(copy(0, graph_->begin, out.bytes));
    out.bytes += message_head(model_graph, static_cast<std::uint64_t>(graph_length));
    std::int64_t copied = graph_->contents;
    for (const Large& large : large_) {
      TRY_VOID(copy(copied, large.tensor.begin, out.bytes));
      out.bytes += large.head_without();
      TRY_VOID(copy(large.tensor.contents, large.data.begin, out.bytes));
      TRY_VOID(copy(large.data.end, large.tensor.end, out.bytes));
      copied = large.tensor.end;
      TRY(auto data, Buffer::allocate_brief(static_cast<std::size_t>(large.data.length())));
      TRY_VOID(model_.read(large.data.contents, {data->data(), data->size_bytes()}));
      out.initializers.emplace(large.place, std::move(data));
    }
    TRY_VOID(copy(copied, model_.size_bytes, out.bytes));
    return MaybeSkeleton(std::move(out));
  }

 private:
  // False: not regular.
  Result<bool> find() {
    TRY(const bool regular, each_field(0, model_.size_bytes, [&](const Field& field) -> Result<bool> {
          if (field.number != model_graph) return true;
          if (!field.is(model_graph) || graph_.has_value()) return false;
          graph_ = field;
          return true;
        }));
    if (!regular || !graph_.has_value()) return false;
    int place = 0;
    return each_field(graph_->contents, graph_->end, [&](const Field& field) -> Result<bool> {
      if (field.number != graph_initializer) return true;
      const int own = place++;
      if (!field.is(graph_initializer)) return false;
      return field.length() < large_bytes_ ? Result<bool>(true) : look_into({own, field, {}});
    });
  }

  Result<bool> look_into(Large large) {
    bool seen = false;
    const Field tensor = large.tensor;
    TRY(const bool regular, each_field(tensor.contents, tensor.end, [&](const Field& field) -> Result<bool> {
          if (field.number != tensor_raw_data) return true;
          if (!field.is(tensor_raw_data) || std::exchange(seen, true)) return false;
          large.data = field;
          return true;
        }));
    if (regular && seen && large.data.length() >= large_bytes_) large_.push_back(large);
    return regular;
  }

  // Whether fields fill the range and use(field) says of each that it is regular.
  template <typename Use>
  Result<bool> each_field(std::int64_t begin, std::int64_t end, Use&& use) {
    while (begin < end) {
      TRY(const MaybeField field, this->field(begin, end));
      if (!field.has_value()) return false;
      TRY(const bool regular, use(*field));
      if (!regular) return false;
      begin = field->end;
    }
    return true;
  }

  Result<void> copy(std::int64_t begin, std::int64_t end, std::string& to) {
    if (begin == end) return {};
    const std::size_t before = to.size();
    to.resize(before + static_cast<std::size_t>(end - begin));
    return model_.read(begin, std::as_writable_bytes(std::span(to).subspan(before)));
  }

  // Nothing: what begins there is no field that ends before `end`.
  Result<MaybeField> field(std::int64_t at, std::int64_t end) {
    Field out;
    out.begin = at;
    TRY(const auto tag, varint(at, end));
    if (!tag.has_value() || *tag >> 3U == 0 || *tag > UINT32_MAX) return MaybeField();
    out.number = static_cast<std::uint32_t>(*tag >> 3U);
    out.type = static_cast<std::uint32_t>(*tag & 7U);
    std::uint64_t length = 0;
    if (out.type == 0) {
      TRY(const auto value, varint(at, end));
      if (!value.has_value()) return MaybeField();
    } else if (out.type == length_delimited) {
      TRY(const auto given, varint(at, end));
      if (!given.has_value()) return MaybeField();
      length = *given;
    } else if (out.type == 1 || out.type == 5) {
      length = out.type == 1 ? 8 : 4;
    } else {
      return MaybeField();
    }
    if (length > static_cast<std::uint64_t>(end - at)) return MaybeField();
    out.contents = at;
    out.end = at + static_cast<std::int64_t>(length);
    return MaybeField(out);
  }

  // Moves `at` behind the number.
  Result<MaybeNumber> varint(std::int64_t& at, std::int64_t end) {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && at < end; shift += 7) {
      TRY(const std::uint8_t byte, byte_at(at++));
      value |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
      if (byte < 0x80) return MaybeNumber(value);
    }
    return MaybeNumber();
  }

  Result<std::uint8_t> byte_at(std::int64_t at) {
    const auto seen = static_cast<std::int64_t>(window_.size());
    if (at < window_at_ || at >= window_at_ + seen) {
      window_.resize(static_cast<std::size_t>(std::min<std::int64_t>(window_bytes, model_.size_bytes - at)));
      window_at_ = at;
      TRY_VOID(model_.read(at, window_));
    }
    return std::to_integer<std::uint8_t>(window_[static_cast<std::size_t>(at - window_at_)]);
  }

  const ModelBytes& model_;
  const std::int64_t large_bytes_;
  std::optional<Field> graph_;
  std::vector<Large> large_;
  std::vector<std::byte> window_;  // of the model, where it is looked at
  std::int64_t window_at_ = 0;
};

}  // namespace

Result<MaybeSkeleton> skeleton_of(const ModelBytes& model, std::int64_t large_bytes) {
  return Walk(model, large_bytes).skeleton();
}

}  // namespace polyphase::wire
