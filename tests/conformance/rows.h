// The rows under test and the clusters that this CPU can run.
#pragma once

#include <vector>

#include "kernel/row.h"

namespace polyphase::test {

std::vector<const Row*> rows_under_test();
std::vector<Cluster> clusters_here();

}  // namespace polyphase::test
