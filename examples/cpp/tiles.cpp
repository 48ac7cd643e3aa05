// Enlarges the two halves of a picture in two threads that share one session, each straight into its part of the
// result.
//
//   tiles MODEL.onnx HEIGHT WIDTH IN OUT
//
// IN holds HEIGHT * WIDTH floats, one channel, row by row. The strides of the views say where a half begins and how far
// its rows lie apart, so nothing is copied by hand.
#include <polyphase/polyphase.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>

using namespace polyphase::api;

namespace {

struct Picture {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::vector<float> pixels;

  // The columns from `first` on as a tensor of shape 1 x 1 x height x columns.
  TensorView columns(std::int64_t first, std::int64_t count) {
    return {DType::f32, {1, 1, height, count}, {height * width, height * width, width, 1}, pixels.data() + first};
  }
};

int refuse(const Error& error) {
  std::fprintf(stderr, "tiles: %s\n", error.text().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: tiles MODEL.onnx HEIGHT WIDTH IN OUT\n");
    return 2;
  }
  Picture small{std::atoll(argv[2]), std::atoll(argv[3]), {}};
  small.pixels.resize(static_cast<std::size_t>(small.height * small.width));
  const auto bytes = static_cast<std::streamsize>(small.pixels.size() * sizeof(float));
  if (!std::ifstream(argv[4], std::ios::binary).read(reinterpret_cast<char*>(small.pixels.data()), bytes)) {
    std::fprintf(stderr, "tiles: %s holds no %lld floats\n", argv[4], static_cast<long long>(small.pixels.size()));
    return 1;
  }

  const Result<Engine> engine = compile(argv[1]);
  if (!engine.ok()) return refuse(engine.error());
  const Result<Session> session = Session::create(*engine, {.threads = 2});
  if (!session.ok()) return refuse(session.error());
  const auto sizes = session->output_sizes({{1, 1, small.height, small.width}});
  if (!sizes.ok()) return refuse(sizes.error());
  const std::vector<std::int64_t> large_sizes = sizes->front().value();
  const std::int64_t scale = large_sizes[3] / small.width;
  Picture large{large_sizes[2], large_sizes[3], {}};
  large.pixels.resize(static_cast<std::size_t>(large.height * large.width));

  const std::int64_t middle = small.width / 2;
  Result<void> done[2];
  const auto enlarge = [&](int half) {
    const std::int64_t first = half == 0 ? 0 : middle;
    const std::int64_t count = half == 0 ? middle : small.width - middle;
    const TensorView from = small.columns(first, count);
    const TensorView to = large.columns(scale * first, scale * count);
    done[half] = session->run_into({&from, 1}, {&to, 1});
  };
  std::thread left(enlarge, 0);
  std::thread right(enlarge, 1);
  left.join();
  right.join();
  for (const auto& half : done) {
    if (!half.ok()) return refuse(half.error());
  }
  std::ofstream out(argv[5], std::ios::binary);
  out.write(reinterpret_cast<const char*>(large.pixels.data()),
            static_cast<std::streamsize>(large.pixels.size() * sizeof(float)));
  std::printf("%lld x %lld, times %lld\n", static_cast<long long>(large.height), static_cast<long long>(large.width),
              static_cast<long long>(scale));
  return out.good() ? 0 : 1;
}
