// A checkpoint into a module: every key that is missing, surplus or of another shape is named; weight_norm is
// multiplied out.
#include <algorithm>
#include <cmath>
#include <map>

#include "api/network_attributes.h"
#include "api/nn/module_parts.h"
#include "api/nn/write.h"

namespace polyphase::api::nn {
namespace {

struct NormSpelling {
  const char* gain;
  const char* direction;
};
constexpr NormSpelling norm_spellings[] = {{".parametrizations.weight.original0", ".parametrizations.weight.original1"},
                                           {".weight_g", ".weight_v"}};

// What stands before the gain's name; nothing: it is no gain.
std::optional<std::string> stem_of(const std::string& name, const std::string& gain) {
  if (name == gain.substr(1)) return "";
  if (name.size() < gain.size() || name.compare(name.size() - gain.size(), gain.size(), gain) != 0) return std::nullopt;
  return name.substr(0, name.size() - gain.size());
}

std::string after_stem(const std::string& stem, const std::string& rest) {
  return stem.empty() ? rest.substr(1) : stem + rest;
}

std::vector<double> doubles_of(const polyphase::TensorView& view) {
  std::vector<double> out(static_cast<std::size_t>(view.element_count()));
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = load_double(view.data + i * polyphase::size_bytes(view.dtype), view.dtype);
  return out;
}

// g has one element for each place of some axes of v, or one for all.
bool belong_together(const Tensor& g, const Tensor& v) {
  if (!polyphase::is_float(g.dtype()) || !polyphase::is_float(v.dtype())) return false;
  if (g.sizes().size() != v.sizes().size()) return g.element_count() == 1;
  for (std::size_t i = 0; i < v.sizes().size(); ++i) {
    if (g.sizes()[i] != 1 && g.sizes()[i] != v.sizes()[i]) return false;
  }
  return true;
}

Result<Tensor> dense(const Tensor& given) {
  TRY(ConstantElements elements, elements_of(given.view(), Access::owner(given), "a weight"));
  return Access::tensor(elements.tensor);
}

// g * v / |v|, the norm over the axes along which g has one element.
Result<Tensor> multiplied(const Tensor& gain, const Tensor& direction) {
  TRY(const Tensor g_tensor, dense(gain));
  TRY(const Tensor v_tensor, dense(direction));
  TRY(const polyphase::TensorView g_view, inner_view(g_tensor.view(), "a weight"));
  TRY(const polyphase::TensorView v_view, inner_view(v_tensor.view(), "a weight"));
  const std::vector<double> g = doubles_of(g_view);
  const std::vector<double> v = doubles_of(v_view);
  const std::vector<std::int64_t>& sizes = direction.sizes();
  std::vector<std::int64_t> g_strides(sizes.size(), 0);
  if (gain.sizes().size() == sizes.size()) {
    std::int64_t stride = 1;
    for (std::size_t i = sizes.size(); i-- > 0; stride *= gain.sizes()[i]) {
      if (gain.sizes()[i] != 1) g_strides[i] = stride;
    }
  }
  std::vector<std::int64_t> v_strides(sizes.size(), 1);
  for (std::size_t i = sizes.size(); i-- > 1;) v_strides[i - 1] = v_strides[i] * sizes[i];
  std::vector<double> squares(g.size(), 0);
  const std::array<const std::int64_t*, 2> strides = {v_strides.data(), g_strides.data()};
  for_each_index<2>(sizes, strides, [&](const auto& at) {
    const double one = v[static_cast<std::size_t>(at[0])];
    squares[static_cast<std::size_t>(at[1])] += one * one;
  });
  TRY(Tensor out, Tensor::allocate(direction.dtype(), sizes));
  auto* out_bytes = static_cast<std::byte*>(out.data());
  for_each_index<2>(sizes, strides, [&](const auto& at) {
    const auto row = static_cast<std::size_t>(at[1]);
    const auto place = static_cast<std::size_t>(at[0]);
    store_double(out_bytes + place * polyphase::size_bytes(v_view.dtype), v_view.dtype,
                 v[place] * (g[row] / std::sqrt(squares[row])));
  });
  return out;
}

StateDict::iterator find_key(StateDict& state, const std::string& name) {
  return std::find_if(state.begin(), state.end(), [&](const auto& one) { return one.first == name; });
}

std::string quoted_list(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "\"" : ", \"") + name + "\"";
  return out;
}

struct Wrong {
  std::vector<std::string> surplus = {};
  std::vector<std::string> missing = {};
  std::string shapes = {};
};

// In PyTorch's words; empty: nothing is wrong.
std::string complaint(const Wrong& wrong, bool strict) {
  std::string said;
  if (strict && !wrong.surplus.empty()) said += " Unexpected key(s) in state_dict: " + quoted_list(wrong.surplus) + ".";
  if (strict && !wrong.missing.empty()) said += " Missing key(s) in state_dict: " + quoted_list(wrong.missing) + ".";
  return said + wrong.shapes;
}

}  // namespace

Result<StateDict> without_weight_norm(const StateDict& given) {
  StateDict out = given;
  for (const auto& [name, tensor] : given) {
    for (const NormSpelling& spelling : norm_spellings) {
      const auto stem = stem_of(name, spelling.gain);
      if (!stem.has_value()) continue;
      const auto gain = find_key(out, name);
      const auto direction = find_key(out, after_stem(*stem, spelling.direction));
      if (gain == out.end() || direction == out.end() || !belong_together(gain->second, direction->second)) continue;
      TRY(Tensor weight, multiplied(gain->second, direction->second));
      out.erase(find_key(out, after_stem(*stem, spelling.direction)));
      out.erase(find_key(out, name));
      const std::string key = after_stem(*stem, ".weight");
      if (const auto old = find_key(out, key); old != out.end()) {
        old->second = std::move(weight);
      } else {
        out.emplace_back(key, std::move(weight));
      }
    }
  }
  return out;
}

Result<void> Module::load_state_dict(const StateDict& state_dict, bool strict) {
  return without_throwing([&]() -> Result<void> {
    TRY_VOID(checked());
    TRY(const StateDict given, without_weight_norm(state_dict));
    std::map<std::string, const Tensor*> by_name;
    for (const auto& [name, tensor] : given) by_name[name] = &tensor;
    std::map<std::string, Parameter> wanted;
    Wrong wrong;
    for (const auto& [name, parameter] : named_parameters()) {
      wanted.emplace(name, parameter);
      const auto found = by_name.find(name);
      if (found == by_name.end()) {
        wrong.missing.push_back(name);
      } else if (found->second->sizes() != parameter.shape()) {
        wrong.shapes += " size mismatch for " + name + ": copying a param with shape " +
                        list_text(found->second->sizes()) + " from checkpoint, the shape in current model is " +
                        list_text(parameter.shape()) + ".";
      }
    }
    for (const auto& [name, tensor] : given) {
      if (wanted.count(name) == 0) wrong.surplus.push_back(name);
    }
    const std::string said = complaint(wrong, strict);
    if (!said.empty()) {
      return refused_layer("Error(s) in loading state_dict for " + parts_->kind + ":" + said,
                           "Give the checkpoint of this architecture.");
    }
    for (auto& [name, parameter] : wanted) {
      if (const auto found = by_name.find(name); found != by_name.end()) TRY_VOID(parameter.set_value(*found->second));
    }
    return {};
  });
}

}  // namespace polyphase::api::nn
