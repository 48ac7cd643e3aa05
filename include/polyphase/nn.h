// Polyphase: networks of layers and functions as PyTorch has them, `polyphase::nn` and `polyphase::nn::functional`.
// They add to a Network (polyphase/network.h); the package polyphase.nn of Python is the same. docs/guides/network.md
// shows both.
#pragma once

#include "polyphase/nn_functional.h"
#include "polyphase/nn_layers.h"
#include "polyphase/nn_module.h"
