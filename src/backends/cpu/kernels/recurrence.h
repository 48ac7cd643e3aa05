// Recurrences (rnn, lstm, gru) in FP32: one phase of tiles per time step, so that all workers share a step.
//
//   phase 0        state and biases laid out
//   1 … steps      gates = x[t] + h[t-1] · R + biases, then the cell; a tile is some units (lanes) of some of the batch
//   last           the final state handed over
//
// A cell so small that one tile holds all its units waits for nobody: there a phase is many steps.
// A gru whose reset gate acts before the product takes two parts a step: r⊙h must be whole before its product. The
// state h is what was written to y; c and the gru's z and r⊙h lie in the shared memory, padded to whole vectors.
// Recurrent weights are packed in panels [direction][block of units][part][k][gate][lane]; all gates of a unit are in
// one tile, so that the cell runs on registers.
#pragma once

#include <cstdint>

#include "ops/recurrence.h"

namespace polyphase::cpu {

struct RecurrencePlan {
  Cell cell;
  int32_t gates;
  int32_t directions;
  int32_t reversed[2];
  int32_t relu[2];  // rnn: by direction; else tanh
  int32_t linear_before_reset;
  int32_t input_forget;
  int32_t bias;  // places of operands; -1: absent
  int32_t lengths;
  int32_t initial_h;
  int32_t initial_c;
  int32_t peephole;
  float clip;  // 0: none
  int64_t steps;
  int64_t batch;
  int64_t hidden;
  int64_t blocks;  // vectors of units
  int64_t tile_blocks;
  int64_t tile_rows;
  int64_t unit_tiles;
  int64_t row_tiles;
  int32_t parts;            // of a step
  int64_t steps_per_phase;  // 1 where a step has several tiles of units: then each part is a phase
  int32_t width;
};

// The first lays out, the last hands over.
inline int recurrence_phases(const RecurrencePlan& p) {
  const int64_t of_steps = p.unit_tiles > 1 ? p.steps * p.parts : (p.steps + p.steps_per_phase - 1) / p.steps_per_phase;
  return static_cast<int>(of_steps) + 2;
}

// Vectors of biases per block: the gates', and for a gru the hidden gate's own.
constexpr int recurrence_biases(Cell cell) { return cell == Cell::gru ? 4 : cell == Cell::lstm ? 4 : 1; }

// Floats of shared memory, in this order: zeros [hidden], biases, then three states [directions][batch][blocks ·
// width].
struct RecurrenceMemory {
  explicit RecurrenceMemory(const RecurrencePlan& p) {
    const int64_t padded = p.blocks * p.width;
    biases = (p.hidden + p.width - 1) / p.width * p.width;
    first = biases + p.directions * padded * recurrence_biases(p.cell);
    const int64_t state = p.directions * p.batch * padded;
    second = first + (p.cell == Cell::rnn ? 0 : state);
    total = second + (p.parts == 2 ? state : 0);
  }
  int64_t biases;
  int64_t first;   // lstm: c; gru: z
  int64_t second;  // gru: r⊙h
  int64_t total;
};

}  // namespace polyphase::cpu
