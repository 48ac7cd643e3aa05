// compare_exported: a model and what was made of it for another engine give the same bits.
#pragma once

#include <span>
#include <string>

#include "api/state.h"
#include "export/legalise.h"
#include "import/imported_model.h"
#include "polyphase/export.h"

namespace polyphase::api {

struct ExportComparison {
  std::span<const std::byte> before;
  const ImportedModel& imported;  // of `before`
  const legal::Legalised& legalised;
  const std::string& folder;  // of external data
  const Workshop& workshop;
  bool other_opset = false;  // then even equal nodes may have got another meaning
};

// Both whole models where our interpreter needs seconds for them and has all their operators; else each rewritten node
// and what stands in its place. Fills in the report. Error: something differs, which is a defect of the rule, or
// nothing could be compared.
Result<void> compare_exported(const ExportComparison& comparison, ExportReport& report);

}  // namespace polyphase::api
