#include "tests/fuzz/native/guard.h"

#include <fcntl.h>
#include <google/protobuf/stubs/logging.h>
#include <sys/time.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <initializer_list>

extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace plancast {
namespace {

// What the handlers read; set before a case runs.
struct {
  const char* bytes = nullptr;
  size_t size = 0;
  char path[4096] = "";
} watched;

void Say(const char* text) {
  const ssize_t written = write(STDERR_FILENO, text, std::strlen(text));
  static_cast<void>(written);
}

// Signal safe.
void SaveInput() {
  if (watched.bytes == nullptr) return;
  const int file = open(watched.path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file < 0) return Say("the input could not be saved\n");
  for (size_t done = 0; done < watched.size;) {
    const ssize_t wrote = write(file, watched.bytes + done, watched.size - done);
    if (wrote <= 0) break;
    done += static_cast<size_t>(wrote);
  }
  close(file);
  Say("input saved as ");
  Say(watched.path);
  Say("\n");
}

void OnSignal(int signal) {
  if (watched.bytes != nullptr) {
    Say(signal == SIGPROF  ? "HANG: not done in the time of a case\n"
        : MemoryWasShort() ? "MEMORY: the case asked for more than it may\n"
                           : "CRASH\n");
    SaveInput();
  }
  std::signal(signal, SIG_DFL);
  raise(signal);
}

}  // namespace

void InstallGuards() {
  google::protobuf::SetLogHandler(nullptr);  // what it complains of is in the status
  static char stack[1 << 16];
  stack_t alternate = {};
  alternate.ss_sp = stack;
  alternate.ss_size = sizeof stack;
  sigaltstack(&alternate, nullptr);
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGPROF, &action, nullptr);
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(SaveInput);
    return;
  }
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
    sigaction(signal, &action, nullptr);
  }
}

void Watch(absl::string_view input, const std::string& path, int cpu_seconds) {
  watched.size = input.size();
  std::strncpy(watched.path, path.c_str(), sizeof watched.path - 1);
  watched.bytes = input.data();
  itimerval timer = {};
  timer.it_value.tv_sec = cpu_seconds;
  setitimer(ITIMER_PROF, &timer, nullptr);
}

void Unwatch() {
  const itimerval off = {};
  setitimer(ITIMER_PROF, &off, nullptr);
  watched.bytes = nullptr;
}

}  // namespace plancast
