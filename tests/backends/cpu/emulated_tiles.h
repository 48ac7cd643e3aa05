// The intrinsics of the matrix unit (Intel SDM, AMX) in plain loops: included before a kernel, so that the way it uses
// the unit is tested where there is none. Refuses what the unit would refuse.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace polyphase::cpu::testing {

struct EmulatedTile {
  int rows = 0;
  int row_bytes = 0;
  unsigned char data[16][64] = {};
};
inline thread_local EmulatedTile emulated_tiles[8];

inline void demand(bool holds) {
  if (!holds) std::abort();
}

inline void configure_tiles(const void* config) {
  const auto* bytes = static_cast<const unsigned char*>(config);
  demand(bytes[0] == 1 && bytes[1] == 0);
  for (int i = 0; i < 8; ++i) {
    std::uint16_t row_bytes;
    std::memcpy(&row_bytes, bytes + 16 + 2 * i, 2);
    EmulatedTile& tile = emulated_tiles[i];
    tile = {};
    tile.rows = bytes[48 + i];
    tile.row_bytes = row_bytes;
    demand(tile.rows <= 16 && tile.row_bytes <= 64);
  }
}

inline void load_tile(int i, const void* from, std::int64_t stride) {
  EmulatedTile& tile = emulated_tiles[i];
  demand(tile.rows > 0);
  for (int r = 0; r < tile.rows; ++r) {
    std::memset(tile.data[r], 0, 64);
    std::memcpy(tile.data[r], static_cast<const unsigned char*>(from) + r * stride,
                static_cast<std::size_t>(tile.row_bytes));
  }
}

inline void store_tile(int i, void* to, std::int64_t stride) {
  const EmulatedTile& tile = emulated_tiles[i];
  demand(tile.rows > 0);
  for (int r = 0; r < tile.rows; ++r) {
    std::memcpy(static_cast<unsigned char*>(to) + r * stride, tile.data[r], static_cast<std::size_t>(tile.row_bytes));
  }
}

inline float widened(const unsigned char* at) {
  std::uint32_t bits = 0;
  std::memcpy(reinterpret_cast<unsigned char*>(&bits) + 2, at, 2);
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

inline void multiply_tiles(int sums, int rows, int columns) {
  EmulatedTile& c = emulated_tiles[sums];
  const EmulatedTile& a = emulated_tiles[rows];
  const EmulatedTile& b = emulated_tiles[columns];
  demand(c.rows == a.rows && c.row_bytes == b.row_bytes && a.row_bytes == 4 * b.rows && b.rows > 0);
  for (int m = 0; m < c.rows; ++m) {
    for (int k = 0; k < b.rows; ++k) {
      for (int n = 0; n < c.row_bytes / 4; ++n) {
        float sum;
        std::memcpy(&sum, c.data[m] + 4 * n, 4);
        sum += widened(a.data[m] + 4 * k) * widened(b.data[k] + 4 * n);
        sum += widened(a.data[m] + 4 * k + 2) * widened(b.data[k] + 4 * n + 2);
        std::memcpy(c.data[m] + 4 * n, &sum, 4);
      }
    }
  }
}

}  // namespace polyphase::cpu::testing

// NOLINTBEGIN(bugprone-reserved-identifier): these are the names of the intrinsics.
#define _tile_loadconfig(config) polyphase::cpu::testing::configure_tiles(config)
#define _tile_release() static_cast<void>(0)
#define _tile_zero(tile) static_cast<void>(std::memset(polyphase::cpu::testing::emulated_tiles[tile].data, 0, 1024))
#define _tile_loadd(tile, from, stride) polyphase::cpu::testing::load_tile(tile, from, stride)
#define _tile_stream_loadd(tile, from, stride) polyphase::cpu::testing::load_tile(tile, from, stride)
#define _tile_stored(tile, to, stride) polyphase::cpu::testing::store_tile(tile, to, stride)
#define _tile_dpbf16ps(sums, rows, columns) polyphase::cpu::testing::multiply_tiles(sums, rows, columns)
// NOLINTEND(bugprone-reserved-identifier)
