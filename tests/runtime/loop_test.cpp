// Loops on the runtime against the interpreter: trips counted, conditions, changing sizes, nesting, cancel and
// deadline.
#include <gtest/gtest.h>

#include <thread>

#include "passes/random_data.h"
#include "runtime/test_network.h"

namespace polyphase {
namespace {

Tensor number(std::int64_t value) {
  return Tensor::from_integers(DType::i64, std::vector<std::int64_t>{}, std::array{value});
}

Tensor line(std::int64_t length) {
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < length; ++i) values.push_back(i % 5 - 2);
  return Tensor::from_integers(DType::f32, std::array{length}, values);
}

// Both ways of running agree, with one thread and with four, twice over one session (the arena is used again).
void expect_like_interpreter(std::string_view text, const std::vector<std::vector<Tensor>>& runs) {
  for (const int threads : {1, 4}) {
    Network net = make(text, {.threads = threads});
    for (int round = 0; round < 2; ++round) {
      for (const std::vector<Tensor>& inputs : runs) {
        const auto expected = interpret(*net.graph, inputs);
        ASSERT_TRUE(expected.ok()) << expected.error().text();
        const auto found = net.session->run(request_of(inputs));
        ASSERT_TRUE(found.ok()) << found.error().text();
        ASSERT_EQ(difference(*expected, *found, 0), "");
      }
    }
  }
}

// Two values change places, a third counts, and each entry is stacked: as many trips as x has entries.
constexpr std::string_view counted = R"(symbol T = 0..64
graph "counted" (%x: f32[T, 3], %p: f32[3], %q: f32[3]) {
  %n = dims() scalar=true values=[T]
  %u = neg(%q)
  %a, %b, %rows = loop(%n, none, %p, %u, %x, %q) carried=2
    graph "body" (%i: i64[], %c: bool[], %s: f32[3], %t: f32[3], %all: f32[T, 3], %k: f32[3]) {
      %e = gather(%all, %i) axis=0
      %m = add(%s, %e)
      %w = mul(%m, %k)
      %v = neg(%k)
      %z = add(%w, %v)
      return %c, %t as "next", %z, %m
    }
  %y = add(%a, %q)
  return %y, %b, %rows
}
)";

TEST(Loop, CountsTripsAndStacksRows) {
  Random random(1);
  std::vector<std::vector<Tensor>> runs;
  for (const std::int64_t trips : {5, 0, 1, 9}) {
    runs.push_back({random_tensor(DType::f32, {trips, 3}, random), random_tensor(DType::f32, {3}, random),
                    random_tensor(DType::f32, {3}, random)});
  }
  expect_like_interpreter(counted, runs);
}

// x is doubled until its sum is large; how many rows there are, only the run tells.
constexpr std::string_view until = R"(symbol N = 1..64
symbol rows = 0..1000000
graph "until" (%x: f32[N], %limit: i64[], %go: bool[]) {
  %y, %sums = loop(%limit, %go, %x) born=[rows] born_at=[1] carried=1
    graph "body" (%i: i64[], %c: bool[], %s: f32[N]) {
      %two = constant() value=f32[]{2}
      %most = constant() value=f32[]{40}
      %d = mul(%s, %two)
      %a = abs(%d)
      %sum = reduce_sum(%a) axes=[0] keep=false
      %again = less(%sum, %most)
      return %again, %d, %sum
    }
  %z = neg(%sums)
  return %y, %z
}
)";

TEST(Loop, EndsByItsCondition) {
  const Tensor yes = Tensor::from_integers(DType::boolean, std::vector<std::int64_t>{}, std::array{std::int64_t{1}});
  const Tensor no = Tensor::from_integers(DType::boolean, std::vector<std::int64_t>{}, std::array{std::int64_t{0}});
  expect_like_interpreter(until, {{line(4), number(100), yes},
                                  {line(4), number(2), yes},
                                  {line(9), number(100), no},
                                  {line(9), number(0), yes},
                                  {line(9), number(1), yes}});
}

// The value grows by its own first entry at every trip: a size for each trip and one for the end.
constexpr std::string_view growing = R"(symbol N = 1..8
symbol length = 0..1000000
symbol end = 0..1000000
graph "growing" (%x: f32[N], %trips: i64[]) {
  %y = loop(%trips, none, %x, %x) born=[end] born_at=[0] carried=1 entering=[length]
    graph "body" (%i: i64[], %c: bool[], %s: f32[length], %x0: f32[N]) {
      %t = neg(%s)
      %u = concat(%t, %x0) axis=0
      return %c, %u
    }
  %z = neg(%y)
  return %z
}
)";

TEST(Loop, CarriesAValueThatGrows) {
  expect_like_interpreter(growing, {{line(3), number(4)}, {line(2), number(0)}, {line(5), number(30)}});
}

// A loop in a branch in a loop; the branches differ in size.
constexpr std::string_view nested = R"(symbol N = 1..8
symbol length = 0..1000
graph "nested" (%x: f32[N], %trips: i64[]) {
  %y = loop(%trips, none, %x, %trips) carried=1
    graph "outer" (%i: i64[], %c: bool[], %s: f32[N], %n: i64[]) {
      %one = constant() value=i64[]{1}
      %odd = bitwise_and(%i, %one)
      %is_odd = cast(%odd) to=bool
      %w = if(%is_odd, %s, %i) born=[length] born_at=[0]
        graph "then" (%a: f32[N], %k: i64[]) {
          %b = concat(%a, %a) axis=0
          return %b
        }
        graph "else" (%a: f32[N], %k: i64[]) {
          %b = loop(%k, none, %a) carried=1
            graph "inner" (%j: i64[], %d: bool[], %v: f32[N]) {
              %r = neg(%v)
              return %d, %r
            }
          return %b
        }
      %sum = reduce_sum(%w) axes=[0] keep=true
      %next = add(%s, %sum)
      return %c, %next
    }
  return %y
}
)";

TEST(Loop, NestsWithBranchesAndLoops) {
  expect_like_interpreter(nested, {{line(3), number(4)}, {line(1), number(0)}, {line(8), number(5)}});
}

constexpr std::string_view endless = R"(graph "endless" (%x: f32[4]) {
  %y = loop(none, none, %x) carried=1
    graph "body" (%i: i64[], %c: bool[], %s: f32[4]) {
      return %c, %s
    }
  return %y
}
)";

TEST(Loop, EndsByCancelAndByDeadline) {
  Network net = make(endless);
  const std::vector<Tensor> inputs{line(4)};
  RunRequest request = request_of(inputs);
  request.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
  const auto late = net.session->run(request);
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().text().substr(0, 39), "the run did not end before its deadline");
  std::atomic<bool> cancelled{false};
  request.deadline.reset();
  request.cancelled = &cancelled;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    cancelled.store(true);
  });
  const auto stopped = net.session->run(request);
  other.join();
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().code, ErrorCode::cancelled);
}

TEST(Loop, GathersNoMoreThanTheLimit) {
  Network net = make(until, {.memory_limit_bytes = 4096});
  const Tensor yes = Tensor::from_integers(DType::boolean, std::vector<std::int64_t>{}, std::array{std::int64_t{1}});
  const Tensor zeros = Tensor::allocate(DType::f32, std::array{std::int64_t{4}}).value();
  const auto found = net.session->run(request_of({zeros, number(INT64_MAX), yes}));
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, ErrorCode::out_of_memory) << found.error().text();
}

}  // namespace
}  // namespace polyphase
