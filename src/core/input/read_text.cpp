#include "core/input/read_text.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "core/base/files/file.hpp"
#include "core/base/text.hpp"
#include "core/base/units.hpp"

namespace dstune {

namespace {

using std::chrono::milliseconds;

FileHandle open_input(const std::filesystem::path& path) {
  if (path == kStandardInput) return FileHandle(::dup(STDIN_FILENO));
  // Without O_NONBLOCK open() of a named pipe would wait until somebody opens it for writing.
  return FileHandle(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
}

// True when read() would return data or the end; false after `limit`.
bool wait_for_input(int file, milliseconds limit) {
  pollfd input{file, POLLIN, 0};
  for (;;) {
    const int ready = ::poll(&input, 1, static_cast<int>(limit.count()));
    if (ready >= 0) return ready > 0;
    if (errno != EINTR) return true;  // read() will report what is wrong
  }
}

std::string in_seconds(milliseconds time) {
  return format_seconds(static_cast<double>(time.count()) / 1000);
}

class Reader {
 public:
  Reader(FileHandle file, const Patience& patience) : file_(std::move(file)), patience_(patience) {}

  /// Reads until there is more than `max_bytes`.
  /// @returns what is wrong, or ""
  std::string read(std::string& text, std::size_t max_bytes, bool is_named) {
    // A named pipe that nobody has opened for writing is at its end for read(), but not for poll(),
    // which waits for the first writer.
    if (is_named && !wait_for_input(file_.get(), patience_.for_writer) &&
        read_piece(text) == Piece::end) {
      return concat("is a pipe that nothing was written to for ", in_seconds(patience_.for_writer));
    }
    while (text.size() <= max_bytes) {
      if (!wait_for_input(file_.get(), patience_.for_data)) {
        return concat("is a pipe from which nothing has come for ", in_seconds(patience_.for_data));
      }
      const Piece piece = read_piece(text);
      if (piece == Piece::end) break;
      if (piece == Piece::fault) return concat("cannot be read: ", std::strerror(errno));
    }
    return "";
  }

 private:
  enum class Piece { some, end, fault };

  Piece read_piece(std::string& text) {
    const auto count = ::read(file_.get(), block_.data(), block_.size());
    if (count == 0) return Piece::end;
    if (count < 0) return errno == EINTR || errno == EAGAIN ? Piece::some : Piece::fault;
    text.append(block_.data(), static_cast<std::size_t>(count));
    return Piece::some;
  }

  FileHandle file_;
  Patience patience_;
  std::array<char, std::size_t{1} << 16U> block_{};
};

}  // namespace

std::optional<std::string> read_text_file(const std::filesystem::path& path, std::size_t max_bytes,
                                          Problems& problems, const Patience& patience) {
  const auto fail = [&](std::string what) {
    problems.add("file", std::move(what));
    return std::nullopt;
  };
  std::error_code ignored;
  if (path != kStandardInput && std::filesystem::is_directory(path, ignored)) {
    return fail("is a directory");
  }
  FileHandle file = open_input(path);
  if (!file) return fail(concat("cannot be read: ", std::strerror(errno)));
  std::string text;
  const bool is_named = path != kStandardInput;
  const std::string fault = Reader(std::move(file), patience).read(text, max_bytes, is_named);
  if (!fault.empty()) return fail(fault);
  if (text.size() > max_bytes) {
    return fail(
        concat("is longer than ", format_bytes(max_bytes), ": this is not a configuration"));
  }
  return text;
}

}  // namespace dstune
