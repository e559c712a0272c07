#include "core/base/files/exit_code.hpp"

#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

namespace dstune {

namespace {

constexpr std::size_t kLongestPath = 4000;
constexpr const char* kTemporary = ".tmp";

// These are globals because a signal handler can read nothing else. They are "" if there is no
// file.
std::array<char, kLongestPath + 1> final_path{};
std::array<char, kLongestPath + 8> temporary{};

}  // namespace

void use_exit_code_file() noexcept {
  const char* name = std::getenv(kExitCodeFileVariable);
  final_path[0] = '\0';
  if (name == nullptr || std::strlen(name) > kLongestPath) return;
  std::strcpy(final_path.data(), name);
  std::strcpy(temporary.data(), name);
  std::strcat(temporary.data(), kTemporary);
}

void leave_exit_code(int code) noexcept {
  if (final_path[0] == '\0') return;
  std::array<char, 16> text{};
  char* const end = std::to_chars(text.data(), text.data() + text.size() - 1, code).ptr;
  *end = '\n';
  const auto length = static_cast<std::size_t>(end + 1 - text.data());
  unlink(temporary.data());  // left by a call that a signal or a full disk cut off, or planted
  const int file =
      open(temporary.data(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (file < 0) return;
  const bool whole = write(file, text.data(), length) == static_cast<ssize_t>(length);
  close(file);
  if (!whole || std::rename(temporary.data(), final_path.data()) != 0) unlink(temporary.data());
}

}  // namespace dstune
