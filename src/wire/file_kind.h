// recognise: what a file is by its first bytes, for files that are not ONNX, with the advice that goes with each.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace polyphase::wire {

// What a file looks like and what its owner should do. `surely_foreign`: the signature leaves no doubt, do not try to
// parse.
struct FileKind {
  bool surely_foreign = false;
  std::string what;  // "a PyTorch archive (.pt, .pt2 or TorchScript)"; empty: nothing known
  std::string advice;
};

FileKind recognise(std::span<const std::byte> bytes);

}  // namespace polyphase::wire
