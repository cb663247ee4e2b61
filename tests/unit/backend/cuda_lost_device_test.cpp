// A kernel that writes to an invalid address breaks CUDA for the whole process, so this happens in a child
// process: the remaining objects must report it in one sentence, be destroyed without errors, and not affect
// the CPU.
#include <fmt/core.h>

#include <cstdlib>

#include "cuda_device.h"
#include "expect_error.h"
#include "sluice/session.h"
#include "source_dir.h"

namespace sluice {
namespace {

std::shared_ptr<Engine> load(const char* backend) {
  return Engine::load(source_dir() + "/models/delta-story", {.backend = backend, .threads = 2});
}

std::vector<std::int32_t> story(Engine& engine) {
  const std::vector<std::int32_t> prompt = {3, 141, 59, 26};
  const auto session = engine.new_session(64);
  GenerateOptions options;
  options.max_tokens = 8;
  options.sampling.temperature = 0;
  return generate(*session, prompt, options).ids;
}

// Adds to an invalid address; the launch itself succeeds.
void lose_device(ops::Backend& backend) {
  constexpr std::int64_t kWidth = 256;
  ops::Add op;
  op.a = op.b = op.out =
      ops::View(reinterpret_cast<void*>(std::uintptr_t{4096}), ops::DType::f32, {1, kWidth});
  backend.run(op);
}

template <class Function>
void expect_lost(Function&& function) {
  expect_error(ErrorKind::resource, {"device was lost", "cudaErrorIllegalAddress", "process"}, function);
}

void check_everything_after_a_loss() {
  const std::vector<std::int32_t> want = story(*load("cpu"));
  {
    const auto engine = load("cuda");
    const auto session = engine->new_session(64);
    session->extend(std::vector<std::int32_t>{3, 141, 59});
    session->step(26);
    const Snapshot snapshot = session->snapshot();
    const auto other = engine->new_session(64);
    const auto backend = ops::make_backend("cuda");
    const ops::Buffer buffer = backend->allocate(1024);
    const auto program = backend->record([] {});

    lose_device(*backend);
    expect_lost([&] { backend->synchronize(); });
    std::vector<float> landed(256, 1.5f);
    expect_lost([&] { backend->download(landed.data(), buffer.data(), 1024); });
    EXPECT_EQ(landed, std::vector<float>(256, 1.5f));
    expect_lost([&] { backend->upload(buffer.data(), landed.data(), 1024); });
    expect_lost([&] { (void)backend->allocate(1024); });
    expect_lost([&] { program->run(); });
    expect_lost([&] { session->step(26); });
    expect_lost([&] { other->extend(std::vector<std::int32_t>{1, 2}); });
    expect_lost([&] { session->restore(snapshot); });
    expect_lost([&] { (void)engine->new_session(64); });
    expect_lost([&] { (void)ops::make_backend("cuda"); });
    expect_lost([&] { (void)load("cuda"); });
  }
  EXPECT_EQ(story(*load("cpu")), want);
}

// A child's failures are not printed, but its stderr is shown if it fails.
int report_failures() {
  const ::testing::TestResult& result = *::testing::UnitTest::GetInstance()->current_test_info()->result();
  for (int i = 0; i < result.total_part_count(); ++i)
    if (result.GetTestPartResult(i).failed())
      fmt::print(stderr, "{}\n", result.GetTestPartResult(i).message());
  return result.Failed() ? 1 : 0;
}

TEST(CudaLostDevice, IsNamedAndDoesNotAffectTheRest) {
  SLUICE_NEED_CUDA();
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a new process, not a fork of this one
  EXPECT_EXIT(
      {
        check_everything_after_a_loss();
        std::exit(report_failures());
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace sluice
