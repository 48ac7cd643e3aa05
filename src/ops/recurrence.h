// What lstm, gru and rnn share between the reference loops and the kernels: their settings, read from the attributes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ops/attributes.h"

namespace polyphase {

enum class Cell : std::uint8_t { rnn, lstm, gru };
Cell cell_of(std::string_view op_name);
// Blocks of rows in the weights: rnn 1, lstm 4 (input, output, forget, cell), gru 3 (update, reset, hidden).
int gates_of(Cell cell);

// The functions that a cell applies, as ONNX names them.
enum class CellFunction : std::uint8_t {
  sigmoid,
  tanh,
  relu,
  affine,
  leaky_relu,
  thresholded_relu,
  scaled_tanh,
  hard_sigmoid,
  elu,
  softsign,
  softplus,
};
struct CellActivation {
  CellFunction function = CellFunction::tanh;
  double alpha = 0;
  double beta = 0;
  bool operator==(const CellActivation&) const = default;
};
// The word of a function in the attribute `activations`; nothing: there is no such function.
std::optional<CellFunction> cell_function(std::string_view word);

struct RecurrenceSettings {
  Cell cell = Cell::rnn;
  int directions = 1;
  bool reversed[2] = {false, false};           // by direction
  std::vector<CellActivation> activations[2];  // by direction: rnn f; lstm f g h; gru f g
  double clip = 0;                             // 0: none
  bool linear_before_reset = false;            // gru
  bool input_forget = false;                   // lstm
};
// Attributes that are complete. Error: a list of activations that does not fit.
Result<RecurrenceSettings> recurrence_settings(std::string_view op_name, const Attributes& attributes);

}  // namespace polyphase
