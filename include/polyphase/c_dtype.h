// The numbers of element types, for C: as polyphase::DType of dtype.h and as engine files hold them.
#pragma once

#include <stdint.h>

// NOLINTBEGIN(readability-identifier-naming): names as C writes them

typedef int32_t polyphase_dtype;
enum {
  POLYPHASE_F32 = 0,
  POLYPHASE_F64 = 1,
  POLYPHASE_F16 = 2,
  POLYPHASE_BF16 = 3,
  POLYPHASE_F8E4M3 = 4,
  POLYPHASE_F8E5M2 = 5,
  POLYPHASE_I8 = 6,
  POLYPHASE_U8 = 7,
  POLYPHASE_I16 = 8,
  POLYPHASE_U16 = 9,
  POLYPHASE_I32 = 10,
  POLYPHASE_U32 = 11,
  POLYPHASE_I64 = 12,
  POLYPHASE_U64 = 13,
  POLYPHASE_BOOL = 14,  // one byte, 0 or 1
  POLYPHASE_I4 = 15,    // one byte per element, sign-extended
  POLYPHASE_U4 = 16
};

// NOLINTEND(readability-identifier-naming)
