#include "core/report/journal/journal_file.hpp"

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "core/base/error.hpp"
#include "core/base/log.hpp"
#include "core/base/text.hpp"

namespace dstune {

namespace {

constexpr Bytes kLongest = Bytes{128} << 20U;

enum class LockResult { taken, busy, unsupported };

LockResult request_lock(const FileHandle& file, const std::string& path) {
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK) return LockResult::busy;
    // Parallel file systems mounted without locks: better no lock than no run.
    if (errno == ENOSYS || errno == ENOLCK || errno == EOPNOTSUPP || errno == EINVAL) {
      return LockResult::unsupported;
    }
    throw_file_error("lock", path, errno);
  }
  return LockResult::taken;
}

// O_NONBLOCK: of two that look at the same moment one may find a FIFO.
constexpr int kCarefully = O_NOFOLLOW | O_NONBLOCK;

// Other kinds of file are somebody else's, or hang who opens them.
void refuse_other_kinds(const std::string& path) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0 || S_ISREG(found.st_mode)) return;
  const char* kind = S_ISLNK(found.st_mode)    ? "a symbolic link"
                     : S_ISFIFO(found.st_mode) ? "a FIFO"
                     : S_ISDIR(found.st_mode)  ? "a directory"
                                               : "a device";
  throw ConfigError(path, {{"--results-dir", concat("has ", kind,
                                                    " where the journal, a regular file, would go; "
                                                    "choose another --results-dir")}});
}

enum class Place { ours, empty, taken };

Place look_at(const std::string& path, const FileHandle& file) {
  struct stat there {};
  struct stat ours {};
  if (::lstat(path.c_str(), &there) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return Place::empty;
    throw_file_error("find", path, errno);
  }
  if (::fstat(file.get(), &ours) != 0) return Place::taken;
  const bool same = there.st_dev == ours.st_dev && there.st_ino == ours.st_ino;
  return same ? Place::ours : Place::taken;
}

FileHandle open_journal(const std::string& path, int flags) {
  refuse_other_kinds(path);
  return open_file(path, flags | kCarefully);
}

}  // namespace

std::optional<std::string> read_journal_file(const std::string& path) {
  refuse_other_kinds(path);
  if (!std::filesystem::exists(path)) return std::nullopt;
  return read_all(open_file(path, O_RDONLY | kCarefully), path, kLongest);
}

std::string back_up_journal(const std::string& path, std::string_view text) {
  for (int number = 1;; ++number) {
    std::string copy = number == 1 ? path + ".bak" : concat(path, ".bak.", number);
    std::error_code fault;
    const auto status = std::filesystem::symlink_status(copy, fault);
    if (status.type() == std::filesystem::file_type::not_found) {
      write_file_atomically(copy, text);
      return copy;
    }
    if (status.type() == std::filesystem::file_type::none) {
      throw_file_error("look at", copy, fault.value());
    }
    if (std::filesystem::is_regular_file(status) && read_text_file(copy) == text) return copy;
  }
}

JournalFile::JournalFile(std::string path, Open open, Seconds patience, SignOfLife other_lives)
    : path_(std::move(path)), other_lives_(std::move(other_lives)) {
  const int exclusive = open == Open::create ? O_EXCL : 0;
  file_ = open_journal(path_, O_RDWR | O_APPEND | O_CREAT | exclusive);
  lock(patience);
}

void JournalFile::lock(Seconds patience) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kBetweenTries{100};
  const auto give_up = Clock::now() + std::chrono::duration<double>(patience);
  bool said_so = false;
  for (;;) {
    const LockResult result = request_lock(file_, path_);
    if (result == LockResult::unsupported && std::exchange(has_lock_, false)) {
      log_warning(
          concat(path_,
                 " is on a file system without file locks: two runs in one folder notice each "
                 "other only through status.json, some seconds late; start one at a time"));
    }
    if (result != LockResult::busy && !is_used_by_another()) {
      if (look_at(path_, file_) == Place::ours) return;
      // Its last owner replaced it: this lock is of a file that has no name any more.
      file_ = open_journal(path_, O_RDWR | O_APPEND | O_CREAT);
      continue;
    }
    if (Clock::now() >= give_up) {
      throw ConfigError(path_, {{"--results-dir",
                                 "is in use by another run of dstune-mpi; wait until it ends, or "
                                 "choose another --results-dir"}});
    }
    if (!said_so) log_line(concat("waiting for the run that still uses ", path_));
    said_so = true;
    std::this_thread::sleep_for(kBetweenTries);
  }
}

std::string JournalFile::read() const {
  if (::lseek(file_.get(), 0, SEEK_SET) != 0) throw_file_error("read", path_, errno);
  return read_all(file_, path_, kLongest);
}

void JournalFile::adopt(std::string whole_lines) {
  text_ = std::move(whole_lines);
  torn_ = true;
}

void JournalFile::cut_off() {
  torn_ = ::ftruncate(file_.get(), static_cast<off_t>(text_.size())) != 0;
}

void JournalFile::append(std::string_view line) {
  stay_in_place();
  if (torn_) cut_off();
  if (torn_) throw_file_error("repair", path_, errno);
  try {
    write_all(file_, line, path_);
    sync_file(file_, path_);
  } catch (const Error&) {
    cut_off();  // so that a line written later, by this run or the next, starts clean
    throw;
  }
  text_ += line;
}

void JournalFile::replace(std::string text) {
  TemporaryFile temporary(temporary_path(path_));
  FileHandle file = create_file(temporary.path(), O_RDWR | O_APPEND);
  request_lock(file, path_);  // before it has the name under which others find it
  write_all(file, text, path_);
  sync_file(file, path_);
  temporary.rename_to(path_);
  sync_parent_directory(path_);
  file_ = std::move(file);
  text_ = std::move(text);
  torn_ = false;
}

bool JournalFile::is_used_by_another() const {
  return !has_lock_ && other_lives_ && other_lives_();
}

bool JournalFile::is_ours() const {
  return look_at(path_, file_) != Place::taken && !is_used_by_another();
}

void JournalFile::stay_in_place() {
  const Place place = look_at(path_, file_);
  if (is_used_by_another()) {
    throw Error(concat(
        path_, " is also in use by another run, which continues; what this run measured is in ",
        back_up_journal(path_, text_)));
  }
  if (place == Place::ours) return;
  if (place == Place::taken) {
    throw Error(concat(path_,
                       " was replaced by another file during the run, which is not touched; what "
                       "this run measured is in ",
                       back_up_journal(path_, text_),
                       ": rename it to journal.jsonl in a folder of its own and use --resume"));
  }
  ensure_directory(std::filesystem::absolute(path_).parent_path().string());
  replace(text_);
  log_warning(concat(path_, " was deleted during the run; it is rewritten, nothing is lost"));
}

bool is_journal_in_use(const std::string& path, const SignOfLife& other_lives) {
  // For writing: NFS gives an exclusive lock to nobody else.
  const FileHandle file(::open(path.c_str(), O_RDWR | O_CLOEXEC | kCarefully));
  if (!file) return false;
  const LockResult result = request_lock(file, path);
  return result == LockResult::busy ||
         (result == LockResult::unsupported && other_lives && other_lives());
}

}  // namespace dstune
