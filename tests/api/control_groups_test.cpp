// Limits of control groups, as both versions and containers tell them.
#include "api/control_groups.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "temporary_folder.h"

namespace polyphase::api {
namespace {

namespace fs = std::filesystem;

class ControlGroupFiles : public ::testing::Test {
 protected:
  void write(const std::string& file, const std::string& text) const {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  ControlGroups groups() const { return {(root_ / "self").string(), (root_ / "mount").string()}; }

  const TemporaryFolder temporary_;
  const fs::path& root_ = temporary_.path();
};

TEST_F(ControlGroupFiles, SecondVersionTakesTheLeastOfAllAround) {
  write("self", "0::/shop/oven\n");
  write("mount/shop/oven/cpu.max", "max 100000\n");
  write("mount/shop/cpu.max", "250000 100000\n");
  write("mount/shop/oven/memory.max", "4096000\n");
  write("mount/shop/memory.max", "max\n");
  EXPECT_EQ(groups().processors(), 2.5);
  EXPECT_EQ(groups().memory_bytes(), 4096000U);
}

TEST_F(ControlGroupFiles, FirstVersionHasAFolderForEachController) {
  write("self", "5:memory:/inside\n4:cpuacct,cpu:/inside\n3:cpuset:/\n0::/\n");
  write("mount/cpu/inside/cpu.cfs_quota_us", "50000\n");
  write("mount/cpu/inside/cpu.cfs_period_us", "100000\n");
  write("mount/cpu/cpu.cfs_quota_us", "-1\n");
  write("mount/cpu/cpu.cfs_period_us", "100000\n");
  write("mount/memory/inside/memory.limit_in_bytes", "9223372036854771712\n");
  write("mount/memory/memory.limit_in_bytes", "1048576\n");
  EXPECT_EQ(groups().processors(), 0.5);
  EXPECT_EQ(groups().memory_bytes(), 1048576U);
}

TEST_F(ControlGroupFiles, ContainersSeeTheirOwnGroupWhereItIsMounted) {
  write("self", "0::/system.slice/of-the-machine-outside\n");
  write("mount/cpu.max", "400000 100000\n");
  EXPECT_EQ(groups().processors(), 4);
}

TEST_F(ControlGroupFiles, NothingIsNoLimit) {
  EXPECT_EQ(groups().processors(), std::numeric_limits<double>::infinity());
  write("self", "no colons\n1:only one\n::\n0::no/slash\n0::/a\n");
  write("mount/a/cpu.max", "many 0\n");
  write("mount/a/memory.max", "");
  write("mount/cpu.max", "100000 0\n");
  EXPECT_EQ(groups().processors(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(groups().memory_bytes(), std::numeric_limits<std::uint64_t>::max());
}

}  // namespace
}  // namespace polyphase::api
