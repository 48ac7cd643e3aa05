// What tests of networks written layer by layer look at: shapes, refusals, and what a network gives.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "polyphase/network.h"

namespace polyphase::api {

inline std::string text_of(const std::vector<Size>& shape) {
  std::string out;
  for (const Size& size : shape) out += (out.empty() ? "" : " ") + size.text();
  return out;
}

inline std::string shape_of(const Result<NetworkTensor>& tensor) {
  return tensor.ok() ? text_of(tensor->shape()) : tensor.error().text();
}

template <typename T>
std::string refusal(const Result<T>& result) {
  return result.ok() ? "it was taken" : result.error().text();
}

// What the network gives for these inputs, its first output only; compiled so that nothing is rounded on the way.
inline std::vector<float> run(const Network& network, const std::vector<TensorView>& inputs,
                              const CompileOptions& options = {}) {
  const auto engine = compile(network, options);
  EXPECT_TRUE(engine.ok()) << engine.error().text();
  if (!engine.ok()) return {};
  const auto session = Session::create(*engine, {.threads = 1, .memory_limit_bytes = 0});
  EXPECT_TRUE(session.ok()) << session.error().text();
  if (!session.ok()) return {};
  const auto found = session->run(inputs);
  EXPECT_TRUE(found.ok()) << found.error().text();
  if (!found.ok()) return {};
  EXPECT_EQ(found->front().dtype(), DType::f32);
  return {found->front().as<float>(), found->front().as<float>() + found->front().element_count()};
}

inline const std::vector<float> three_taps = {1, 10, 100};
inline const std::vector<float> ramp = {1, 2, 3, 4};

}  // namespace polyphase::api
