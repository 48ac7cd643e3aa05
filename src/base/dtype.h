// DType, as the public header defines it.
#pragma once

#include "polyphase/dtype.h"
