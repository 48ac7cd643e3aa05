// Which cluster's vectors write panels: those of the CPU at hand, whatever the target is.
#include "backends/cpu/kernels/panel_lines.h"

#include "backends/cpu/catalogue.h"
#include "backends/cpu/rows/row_list.h"

namespace polyphase::cpu {

void write_panel_lines(const PanelLines& lines) {
  static auto* const write = kernels_of(native_cluster()).panel_lines;
  write(lines);
}

}  // namespace polyphase::cpu
