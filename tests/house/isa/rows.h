// The table that each cluster of the sample kernels hands out: the only thing another object may see of it.
#pragma once

#include <cstddef>

namespace polyphase::house {

struct SampleRows {
  const char* cluster;
  float (*dot)(const float* a, const float* b, std::size_t count);
  float (*median)(const float* values, std::size_t count);
};

// Defined in median.cpp, called through rows.cpp: two sources of one cluster that meet in the partial link.
float median_of(const float* values, std::size_t count);

}  // namespace polyphase::house

extern "C" const polyphase::house::SampleRows house_rows_scalar;
extern "C" const polyphase::house::SampleRows house_rows_avx2;
extern "C" const polyphase::house::SampleRows house_rows_avx512;
