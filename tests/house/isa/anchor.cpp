// Gives the sample library an ordinary source of its own, as every room that carries sealed objects has.
#include "rows.h"

namespace polyphase::house {

static_assert(sizeof(SampleRows) == 3 * sizeof(void*));

}  // namespace polyphase::house
