// Sizes born from data.
#include "import/compose/bound_size.h"

#include "import/compose/symbol_name.h"

namespace polyphase {

Result<Dim> bound_size(Emitter& node, Value* number, DimRange range, std::set<std::string, std::less<>>& used) {
  if (number->contents.has_value() && number->contents->size() == 1) return number->contents->front();
  if (number->type.dtype != DType::i64 && number->type.dtype != DType::i32) {
    TRY(number, node.emit("cast", Attributes({{"to", DType::i64}}), {number}));
  }
  const Dim size = range.low == range.high ? Dim::symbol(unique_symbol(number->name, used))
                                           : Dim::symbol(unique_symbol(number->name, used), range);
  TRY_VOID(node.emit("bind", Attributes({{"symbols", std::vector<Dim>{size}}}), {number}));
  return size;
}

}  // namespace polyphase
