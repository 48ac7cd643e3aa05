// converters: the table of the importer of PyTorch programs.
#include "import/torch/converter.h"
#include "polyphase/diagnose.h"

namespace polyphase::api {

std::vector<ConverterInfo> converters() {
  const AtenTable table;
  std::vector<ConverterInfo> out;
  for (const auto& [name, converter] : table.all())
    out.push_back({name, std::string(converter.declaration), converter.in_place});
  return out;
}

}  // namespace polyphase::api
