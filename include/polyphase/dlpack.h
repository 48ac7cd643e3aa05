// DLPack's tensor as C sees it: the layout of dlpack.h 1.x, for programs that do not have that header. Where the
// program does, include dlpack.h first, and this file declares nothing. The layout is DLPack's
// (https://dmlc.github.io/dlpack).
#pragma once

#if !defined(DLPACK_DLPACK_H_) && !defined(POLYPHASE_DLPACK_DECLARED)
#define POLYPHASE_DLPACK_DECLARED

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  uint32_t major;
  uint32_t minor;
} DLPackVersion;

typedef enum { kDLCPU = 1, kDLCUDA = 2, kDLCUDAHost = 3 } DLDeviceType;

typedef struct {
  DLDeviceType device_type;
  int32_t device_id;
} DLDevice;

typedef enum {
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLBfloat = 4,
  kDLBool = 6,
  kDLFloat8_e4m3fn = 10,
  kDLFloat8_e5m2 = 12
} DLDataTypeCode;

typedef struct {
  uint8_t code;    // DLDataTypeCode
  uint8_t bits;    // of one element
  uint16_t lanes;  // 1
} DLDataType;

typedef struct {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;      // in elements; NULL: row-major without gaps
  uint64_t byte_offset;  // from data to the element (0, ..., 0)
} DLTensor;

#define DLPACK_FLAG_BITMASK_READ_ONLY (1UL << 0UL)
#define DLPACK_FLAG_BITMASK_IS_COPIED (1UL << 1UL)
#define DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED (1UL << 2UL)

// Whoever is given one calls deleter(self) once when done with it (a null deleter: nothing to do).
typedef struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned* self);
  uint64_t flags;
  DLTensor dl_tensor;
} DLManagedTensorVersioned;

#ifdef __cplusplus
}
#endif
#endif
