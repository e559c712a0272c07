#include "core/base/files/standard_output.hpp"

#include <cerrno>
#include <csignal>
#include <string>

#include <fcntl.h>
#include <unistd.h>

#include "core/base/files/file.hpp"
#include "core/base/printable.hpp"

namespace dstune {

void print(std::string_view text) {
  const std::string name = "standard output";
  const FileHandle output(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0));
  if (!output) throw_file_error("write", name, errno);
  write_all(output, printable_lines(text), name);
}

void secure_standard_streams() {
  std::signal(SIGPIPE, SIG_IGN);  // a write then fails with EPIPE
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0) continue;
    // open() takes the lowest number that is free: this one. Read-only, so that writing fails.
    static_cast<void>(::open("/dev/null", O_RDONLY));
  }
}

}  // namespace dstune
