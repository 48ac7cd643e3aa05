// The timing cache: what is written is read, by any number of writers, and nothing that lies in its place does harm.
#include "tune/timing_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "temporary_folder.h"

namespace polyphase {
namespace {

class TimingCacheTest : public ::testing::Test {
 protected:
  void write(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }
  std::string read() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  TimingCache open(const TimingCache::Limits& limits = {}) const {
    auto cache = TimingCache::open(path_, limits);
    EXPECT_TRUE(cache.ok()) << (cache.ok() ? "" : cache.error().text());
    return std::move(cache).value();
  }
  Error refusal() const {
    auto cache = TimingCache::open(path_);
    return cache.ok() ? Error{} : cache.error();
  }

  const TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "timings.txt";
};

TEST_F(TimingCacheTest, ReadsWhatItWrote) {
  TimingCache cache = open();
  cache.remember("cpu, 1 thread", "conv{}", {{"gemm", 12}, {"pixels", 34}});
  cache.remember("cpu, 1 thread", "conv{}", {{"gemm", 99}, {"winograd", 56}});
  EXPECT_FALSE(std::filesystem::exists(path_));
  ASSERT_TRUE(cache.save().ok());
  EXPECT_EQ(read(), "polyphase timing cache 1\ncpu, 1 thread\tconv{}\tgemm 12 pixels 34 winograd 56\n");
  const TimingCache again = open();
  const StepTimes* times = again.look_up("cpu, 1 thread", "conv{}");
  ASSERT_NE(times, nullptr);
  EXPECT_EQ(*times, (StepTimes{{"gemm", 12}, {"pixels", 34}, {"winograd", 56}}));
  EXPECT_EQ(again.look_up("cpu, 2 threads", "conv{}"), nullptr);
  EXPECT_EQ(again.look_up("cpu, 1 thread", "conv"), nullptr);
  EXPECT_EQ(again.damaged_lines(), 0U);
}

TEST_F(TimingCacheTest, WritesOnlyWhatIsNew) {
  TimingCache cache = open();
  cache.remember("a", "b", {{"row", 1}});
  ASSERT_TRUE(cache.save().ok());
  const auto before = std::filesystem::last_write_time(path_);
  std::filesystem::last_write_time(path_, before - std::chrono::hours(1));
  ASSERT_TRUE(cache.save().ok());
  ASSERT_TRUE(open().save().ok());
  EXPECT_EQ(std::filesystem::last_write_time(path_), before - std::chrono::hours(1));
}

TEST_F(TimingCacheTest, MergesWhatOthersWroteMeanwhile) {
  TimingCache mine = open();
  TimingCache other = open();
  mine.remember("m", "mine", {{"row", 1}});
  mine.remember("m", "both", {{"row", 2}, {"no word", 5}, {"", 5}});
  mine.remember("m", "no\nline", {{"row", 2}});
  EXPECT_NE(mine.look_up("m", "no\nline"), nullptr);  // in memory
  other.remember("m", "both", {{"row", 3}});
  ASSERT_TRUE(other.save().ok());
  ASSERT_TRUE(mine.save().ok());
  const TimingCache all = open();
  EXPECT_EQ(*all.look_up("m", "mine"), (StepTimes{{"row", 1}}));
  EXPECT_EQ(*all.look_up("m", "both"), (StepTimes{{"row", 3}}));
  EXPECT_EQ(all.damaged_lines(), 0U);
}

TEST_F(TimingCacheTest, KeepsTheTimesThatWereThereFirst) {
  TimingCache mine = open();
  TimingCache other = open();
  mine.remember("m", "step", {{"row", 2}, {"more", 7}});
  other.remember("m", "step", {{"row", 3}});
  ASSERT_TRUE(other.save().ok());
  ASSERT_TRUE(mine.save().ok());
  EXPECT_EQ(*open().look_up("m", "step"), (StepTimes{{"more", 7}, {"row", 3}}));
}

TEST_F(TimingCacheTest, TakesManyWritersAtOnce) {
  constexpr int processes = 8;
  constexpr int steps = 8;
  std::vector<pid_t> children;
  for (int child = 0; child < processes; ++child) {
    const pid_t pid = fork();
    if (pid == 0) {
      bool ok = true;
      for (int step = 0; step < steps; ++step) {
        auto cache = TimingCache::open(path_, {.file_bytes = 1 << 20, .lock_seconds = 120});
        ok = ok && cache.ok();
        if (!ok) break;
        cache->remember("machine", std::to_string(child) + "." + std::to_string(step), {{"row", 1}});
        cache->remember("machine", "shared", {{"row", static_cast<std::uint64_t>(child + 1)}});
        ok = ok && cache->save().ok();
      }
      _exit(ok ? 0 : 1);
    }
    children.push_back(pid);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  const TimingCache all = open();
  EXPECT_EQ(all.damaged_lines(), 0U);
  for (int child = 0; child < processes; ++child) {
    for (int step = 0; step < steps; ++step)
      EXPECT_NE(all.look_up("machine", std::to_string(child) + "." + std::to_string(step)), nullptr);
  }
  ASSERT_NE(all.look_up("machine", "shared"), nullptr);
  EXPECT_EQ(all.look_up("machine", "shared")->size(), 1U);
}

TEST_F(TimingCacheTest, LeavesDamagedLinesOut) {
  const std::string good = "m\tgood\trow 5\n";
  const std::string bad[] = {"\n",
                             "m\n",
                             "m\tstep\n",
                             "m\tstep\t\n",
                             "\tstep\trow 5\n",
                             "m\t\trow 5\n",
                             "m\ts\trow\n",
                             "m\ts\trow x\n",
                             "m\ts\trow -5\n",
                             "m\ts\trow 0\n",
                             "m\ts\trow 5 \n" /* a space */,
                             "m\ts\trow 5 6\n",
                             "m\ts\trow 1 row 2\n",
                             "m\ts\trow 5.5\n",
                             "m\ts\trow 99999999999999999999\n",
                             "m\ts\trow 3600000000001\n",
                             std::string("m\ts\0s\trow 5\n", 12),
                             "m\t" + std::string(20000, 's') + "\trow 5\n"};
  for (const std::string& line : bad) {
    write("polyphase timing cache 1\n" + line + good);
    const TimingCache cache = open();
    EXPECT_NE(cache.look_up("m", "good"), nullptr) << line;
    EXPECT_EQ(cache.look_up("m", "step"), nullptr) << line;
    if (line != "m\ts\trow 5 \n") {
      EXPECT_EQ(cache.damaged_lines(), 1U) << line;
    }
  }
  write("polyphase timing cache 1\n" + good + "m\tcut off\trow 5");
  EXPECT_EQ(open().damaged_lines(), 1U);
  EXPECT_EQ(open().look_up("m", "cut off"), nullptr);
}

TEST_F(TimingCacheTest, NeverTouchesAFileOfAnotherKind) {
  write("my thesis\n");
  EXPECT_EQ(refusal().code, ErrorCode::corrupt);
  EXPECT_NE(refusal().message.find("timings.txt' is no timing cache."), std::string::npos) << refusal().message;
  write("polyphase timing cache 2\nm\ts\trow 5\n");
  EXPECT_EQ(refusal().code, ErrorCode::corrupt);
  std::filesystem::remove(path_);
  TimingCache cache = open();
  cache.remember("m", "s", {{"row", 5}});
  write("my thesis\n");  // meanwhile
  EXPECT_FALSE(cache.save().ok());
  EXPECT_EQ(read(), "my thesis\n");
  std::filesystem::remove(path_);
  std::filesystem::create_directory(path_);
  EXPECT_EQ(refusal().code, ErrorCode::io);
  std::filesystem::remove(path_);
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(refusal().code, ErrorCode::io);  // and does not wait for a writer
}

TEST_F(TimingCacheTest, HasBounds) {
  const TimingCache::Limits small = {.file_bytes = 2000, .lock_seconds = 1};
  TimingCache cache = open(small);
  for (int i = 0; i < 500; ++i) cache.remember("machine", "step" + std::to_string(i), {{"row", 5}});
  ASSERT_TRUE(cache.save().ok());
  EXPECT_LE(std::filesystem::file_size(path_), 2000U);
  const TimingCache kept = open(small);
  EXPECT_EQ(kept.look_up("machine", "step0"), nullptr);
  EXPECT_NE(kept.look_up("machine", "step499"), nullptr);  // the last ones stay
  write("polyphase timing cache 1\n" + std::string(5000, 'x') + "\n");
  EXPECT_EQ(TimingCache::open(path_, small).error().code, ErrorCode::corrupt);
}

TEST_F(TimingCacheTest, DoesNotWaitForEver) {
  const std::string lock = path_.string() + ".lock";
  const int file = ::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(flock(file, LOCK_EX), 0);
  TimingCache cache = open({.file_bytes = 1 << 20, .lock_seconds = 0.05});
  cache.remember("m", "s", {{"row", 5}});
  const auto refused = cache.save();
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("another process keeps the lock"), std::string::npos);
  close(file);
  EXPECT_TRUE(cache.save().ok());  // what was not written is not forgotten
  EXPECT_NE(open().look_up("m", "s"), nullptr);
}

TEST_F(TimingCacheTest, ReadsAnyBytes) {
  std::mt19937 random(7);
  const std::string words[] = {"m",   "\t", "\n", "row", " ", "5", "\xff", std::string(1, '\0'), "99999999999999999999",
                               "step"};
  for (int trial = 0; trial < 300; ++trial) {
    std::string text = trial % 4 == 0 ? "" : "polyphase timing cache 1\n";
    for (std::size_t i = random() % 60; i > 0; --i) text += words[random() % std::size(words)];
    write(text);
    auto cache = TimingCache::open(path_);
    if (!cache.ok()) continue;
    cache->remember("machine", "step", {{"row", 5}});
    ASSERT_TRUE(cache->save().ok());
    const TimingCache again = open();
    ASSERT_EQ(again.damaged_lines(), 0U) << text;
    ASSERT_NE(again.look_up("machine", "step"), nullptr);
  }
}

TEST(TimingCacheFolder, FollowsTheEnvironment) {
  const auto with = [](const char* own, const char* base, const char* home) {
    const auto set = [](const char* name, const char* value) {
      value == nullptr ? unsetenv(name) : setenv(name, value, 1);
    };
    set("POLYPHASE_CACHE_DIR", own);
    set("XDG_CACHE_HOME", base);
    set("HOME", home);
    return default_timing_cache();
  };
  EXPECT_EQ(with("/a", "/b", "/c"), "/a/timings.txt");
  EXPECT_EQ(with("", "/b", "/c"), "/b/polyphase/timings.txt");
  EXPECT_EQ(with(nullptr, nullptr, "/c"), "/c/.cache/polyphase/timings.txt");
  EXPECT_EQ(with(nullptr, nullptr, nullptr), "");
}

}  // namespace
}  // namespace polyphase
