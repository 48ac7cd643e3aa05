// What Session::explain and RunOptions::report say.
#pragma once

#include "polyphase/polyphase.h"
#include "runtime/session.h"

namespace polyphase::api {

// Of the levels that are planned; the steps of later ones are marked sizes_unknown.
Report report_of(const polyphase::Session& session, const LevelPlans& plans);

}  // namespace polyphase::api
