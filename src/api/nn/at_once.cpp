// Layers on arrays: a network of one call.
#include "api/nn/write.h"
#include "polyphase/nn_module.h"

namespace polyphase::api::nn {

Result<Tensor> at_once(const WriteLayers& write, const std::vector<TensorView>& arrays) {
  return without_throwing([&]() -> Result<Tensor> {
    if (!write) return refused_layer("at_once is given no function.", "Give a module, or a function of layers.");
    Network network({.name = "at_once"});
    std::vector<NetworkTensor> inputs;
    for (const TensorView& array : arrays) {
      const std::vector<Size> sizes(array.sizes.begin(), array.sizes.end());
      TRY(inputs.emplace_back(), network.add_input("array" + std::to_string(inputs.size()), array.dtype, sizes));
    }
    TRY_VOID(network.mark_output(write(inputs), "result"));
    TRY(const Engine engine, compile(network));
    TRY(const Session session, Session::create(engine));
    TRY(std::vector<Tensor> results, session.run(arrays));
    return std::move(results.front());
  });
}

}  // namespace polyphase::api::nn
