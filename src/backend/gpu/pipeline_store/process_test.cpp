#include "backend/gpu/pipeline_store/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>

namespace tern::gpu {
namespace {

Result<ProcessResult> run_shell(const std::string& script, ProcessRequest request = {}) {
  request.arguments = {"/bin/sh", "-c", script};
  return posix_process_runner()->run(request);
}

TEST(ProcessRunner, GivesStatusAndBothOutputs) {
  const ProcessResult result = run_shell("echo out; echo err >&2; exit 3").value();
  EXPECT_EQ(result.exit_status, 3);
  EXPECT_EQ(result.signal, 0);
  EXPECT_EQ(result.output, "out\nerr\n");
}

TEST(ProcessRunner, TheChildGetsItsEnvironmentAndFolderAndNoInput) {
  ProcessRequest request;
  request.environment = {"ONLY=this"};
  request.folder = "/";
  const ProcessResult result =
      run_shell("echo $ONLY; echo ${HOME-none}; pwd; cat; echo end", request).value();
  EXPECT_EQ(result.output, "this\nnone\n/\nend\n");
}

TEST(ProcessRunner, TheChildInheritsNoDescriptor) {
  const int open_descriptor = ::open("/dev/null", O_RDONLY);  // without close-on-exec
  ASSERT_GE(open_descriptor, 0);
  const ProcessResult result =
      run_shell("test -e /proc/self/fd/" + std::to_string(open_descriptor) + " && echo there")
          .value();
  EXPECT_EQ(result.output, "");
  ::close(open_descriptor);
}

TEST(ProcessRunner, AProgramThatTakesTooLongIsKilledWithItsChildren) {
  ProcessRequest request;
  request.most_ms = 200;
  const auto start = std::chrono::steady_clock::now();
  const ProcessResult result = run_shell("sleep 100 & sleep 100", request).value();
  EXPECT_TRUE(result.has_timed_out);
  EXPECT_EQ(result.signal, SIGKILL);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(ProcessRunner, AGrandchildThatKeepsThePipeDoesNotKeepTheCaller) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(run_shell("sleep 100 & echo done").value().output, "done\n");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(ProcessRunner, MuchOutputIsReadToTheEndAndBounded) {
  ProcessRequest request;
  request.most_output = 1000;
  const ProcessResult result =
      run_shell("i=0; while [ $i -lt 20000 ]; do echo 0123456789; i=$((i+1)); done", request)
          .value();
  EXPECT_EQ(result.exit_status, 0);
  EXPECT_EQ(result.output.size(), 1000u);
}

TEST(ProcessRunner, SignalsAndMissingProgramsAreTold) {
  EXPECT_EQ(run_shell("kill -9 $$").value().signal, SIGKILL);
  ProcessRequest request;
  request.arguments = {"/no/such/program"};
  const Result<ProcessResult> missing = posix_process_runner()->run(request);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace tern::gpu
