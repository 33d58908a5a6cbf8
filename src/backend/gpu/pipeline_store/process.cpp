#include "backend/gpu/pipeline_store/process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <system_error>
#include <thread>

namespace tern::gpu {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

// A descriptor that is closed with the object.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int number() const { return number_; }
  void close() {
    if (number_ >= 0) ::close(number_);
    number_ = -1;
  }

 private:
  int number_;
};

int open_pipe(int (&ends)[2]) {
#if defined(__APPLE__)
  if (::pipe(ends) != 0) return -1;
  ::fcntl(ends[0], F_SETFD, FD_CLOEXEC);
  return ::fcntl(ends[1], F_SETFD, FD_CLOEXEC);
#else
  return ::pipe2(ends, O_CLOEXEC);
#endif
}

std::vector<char*> pointers_of(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  // posix_spawn takes char*, and does not write.
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Starts the child in a process group of its own, with default signals, nothing on its standard
// input, both outputs in the pipe, and no other descriptor.
int spawn(const ProcessRequest& request, int output, pid_t& child) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, output, 1);
  ::posix_spawn_file_actions_adddup2(&actions, output, 2);
  if (!request.folder.empty()) {
    ::posix_spawn_file_actions_addchdir_np(&actions, request.folder.c_str());
  }
  short flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
#if defined(__APPLE__)
  flags |= POSIX_SPAWN_CLOEXEC_DEFAULT;
#else
  ::posix_spawn_file_actions_addclosefrom_np(&actions, 3);
#endif
  sigset_t none;
  sigset_t all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes, flags);
  const std::vector<char*> arguments = pointers_of(request.arguments);
  const std::vector<char*> environment = pointers_of(request.environment);
  const int error = ::posix_spawn(&child, request.arguments.front().c_str(), &actions, &attributes,
                                  arguments.data(), environment.data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  return error;
}

// Reads what is there; false at the end of the pipe.
bool drain(int descriptor, std::size_t most, std::string& output) {
  std::array<char, 16384> piece{};
  for (;;) {
    const ssize_t n = ::read(descriptor, piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    if (n == 0) return false;
    const std::size_t room = most - std::min(most, output.size());
    output.append(piece.data(), std::min(room, static_cast<std::size_t>(n)));
  }
}

void take_status(int status, ProcessResult& result) {
  if (WIFEXITED(status)) result.exit_status = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
}

class PosixProcessRunner final : public ProcessRunner {
 public:
  [[nodiscard]] Result<ProcessResult> run(const ProcessRequest& request) override {
    const std::string& program = request.arguments.front();
    int ends[2] = {-1, -1};
    if (open_pipe(ends) != 0) return trouble(program, errno);
    const Descriptor reading(ends[0]);
    Descriptor writing(ends[1]);
    if (::fcntl(reading.number(), F_SETFL, O_NONBLOCK) != 0) return trouble(program, errno);
    pid_t child = -1;
    const int error = spawn(request, writing.number(), child);
    if (error != 0) return trouble(program, error);
    writing.close();
    return watch(request, child, reading.number());
  }

 private:
  static Error trouble(const std::string& program, int error) {
    return fail(error == ENOENT || error == ENOTDIR ? ErrorCode::kNotFound : ErrorCode::kIo,
                "{} cannot be started: {}", program, std::generic_category().message(error));
  }

  static ProcessResult watch(const ProcessRequest& request, pid_t child, int output) {
    const SteadyTime deadline =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(request.most_ms);
    ProcessResult result;
    bool is_open = true;
    for (;;) {
      struct pollfd waiting = {output, POLLIN, 0};
      // A grandchild may keep the pipe after the child's end, so both are looked at.
      if (is_open) {
        ::poll(&waiting, 1, 20);
        is_open = drain(output, request.most_output, result.output);
      } else {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      int status = 0;
      if (::waitpid(child, &status, WNOHANG) == child) {
        if (is_open) drain(output, request.most_output, result.output);
        if (!result.has_timed_out) take_status(status, result);
        ::kill(-child, SIGKILL);  // whatever it has left behind
        return result;
      }
      if (!result.has_timed_out && std::chrono::steady_clock::now() > deadline) {
        result.has_timed_out = true;
        result.signal = SIGKILL;
        ::kill(-child, SIGKILL);
      }
    }
  }
};

}  // namespace

std::shared_ptr<ProcessRunner> posix_process_runner() {
  return std::make_shared<PosixProcessRunner>();
}

}  // namespace tern::gpu
