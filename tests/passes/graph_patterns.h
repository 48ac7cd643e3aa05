// Uses of several operators together that random graphs have, as networks do.
#pragma once

#include "passes/graph_growth.h"

namespace polyphase {

// Each adds its nodes behind a value of the graph, or nothing where none fits.
class GraphPatterns : protected GraphGrowth {
 protected:
  using GraphGrowth::GraphGrowth;

  // x * sigmoid(x); a norm written out.
  void gate();
  // Channels as the real parts of spectra, whose frames are windowed and added where they overlap.
  void overlap();
  // Convolutions of three taps and of one beside each other.
  void part();
  // A dense block: each layer reads all images so far, written as a list of them.
  void gather();
  // A convolution whose weights are scaled by what the image says of each channel, and by their own squares.
  void modulate();
  // A convolution of 8 bits whose sums are 32 bits wide.
  void quantise();
  // Rows of x look at each other; scaled before or behind the product, masked or not.
  void attend();
};

}  // namespace polyphase
