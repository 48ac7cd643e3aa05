// What Session::explain and RunOptions::report say.
#pragma once

#include "polyphase/polyphase.h"
#include "runtime/session.h"

namespace polyphase::api {

// Of the levels that are planned; the steps of later ones are marked sizes_unknown. `times`: that chose the kernels.
Report report_of(const polyphase::Session& session, const LevelPlans& plans, RowTimes* times = nullptr);

}  // namespace polyphase::api
