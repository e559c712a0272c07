#include "core/report/journal.hpp"

#include <cerrno>
#include <chrono>
#include <ctime>
#include <stdexcept>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>

#include "core/base/error.hpp"
#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/report/journal_reader.hpp"

namespace dstune {

namespace {

constexpr int kSchema = 2;
constexpr int kCrashesUntilQuarantine = 2;

std::int64_t monotonic_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

bool need_not_be_repeated(const Outcome& outcome) {
  const auto* failed = std::get_if<Failed>(&outcome);
  return failed == nullptr || failed->kind != FailureKind::worker_lost;
}

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

}  // namespace

Journal::Journal(const std::string& path, Mode mode, const RunIdentity& identity, bool force,
                 Seconds lock_patience)
    : path_(path), clock_start_ns_(monotonic_ns()) {
  file_ = open_file(path, O_RDWR | O_APPEND | O_CREAT | (mode == Mode::create ? O_EXCL : 0));
  lock(lock_patience);
  if (mode == Mode::resume) read_existing(identity, force);
  clock_start_ns_ = monotonic_ns();
  append("run", {{"identity", to_json(identity)}});
  sync_parent_directory(path);
}

void Journal::lock(Seconds patience) {
  constexpr std::chrono::milliseconds kBetweenTries{100};
  const std::int64_t give_up = monotonic_ns() + static_cast<std::int64_t>(patience * 1e9);
  bool said_so = false;
  while (request_lock(file_, path_) == LockResult::busy) {
    if (monotonic_ns() >= give_up) {
      throw ConfigError(path_, {{"--results-dir",
                                 "is in use by another run of dstune-mpi; wait for its end, or "
                                 "choose another --results-dir"}});
    }
    if (!said_so) log_line(concat("waiting for the run that still uses ", path_));
    said_so = true;
    std::this_thread::sleep_for(kBetweenTries);
  }
}

void Journal::read_existing(const RunIdentity& identity, bool force) {
  const std::string text = read_text_file(path_);
  JournalContent content = read_journal(text, path_);
  if (content.identity && !force) {
    auto problems = differences(*content.identity, identity);
    if (!problems.empty()) {
      problems.push_back({"--resume",
                          "would mix these results; use --overwrite to start again, another "
                          "--results-dir, or --force-resume to mix them"});
      throw ConfigError(path_, std::move(problems));
    }
  }
  size_ = content.valid_bytes;
  torn_ = text.size() > content.valid_bytes;
  offset_ = content.end;
  crashes_ = std::move(content.crashes);
  for (auto& record : content.records) remember(std::move(record));
}

void Journal::append(const char* type, json::object content) {
  json::object line = {{"schema", kSchema}, {"type", type}, {"time", utc_now()}, {"at_s", now()}};
  for (auto& member : content) line[member.key()] = std::move(member.value());
  const std::string text = to_json_text(line, 0) + "\n";
  const auto cut_off_torn_line = [this] {
    torn_ = ::ftruncate(file_.get(), static_cast<off_t>(size_)) != 0;
  };
  if (torn_) cut_off_torn_line();
  if (torn_) throw_file_error("repair", path_, errno);
  try {
    write_all(file_, text, path_);
    sync_file(file_, path_);
  } catch (const Error&) {
    cut_off_torn_line();  // so that a line written later, by this run or the next, starts clean
    throw;
  }
  size_ += text.size();
}

void Journal::started(const Experiment& experiment, const std::vector<int>& ranks) {
  json::array world_ranks;
  for (const int rank : ranks) world_ranks.emplace_back(rank);
  append("started", {{"experiment", to_json(experiment)}, {"ranks", std::move(world_ranks)}});
}

void Journal::finished(const Record& record) {
  append("finished", to_json(record));
  remember(record);
}

void Journal::stopped() { append("stopped", {}); }

void Journal::remember(Record record) {
  if (need_not_be_repeated(record.outcome)) {
    finished_[record.experiment.key()] = records_.size();
  }
  records_.push_back(std::move(record));
}

std::optional<Record> Journal::find(const Experiment& experiment) const {
  const std::string key = experiment.key();
  if (const auto found = finished_.find(key); found != finished_.end()) {
    Record record = records_[found->second];
    record.experiment = experiment;
    return record;
  }
  const auto crashed = crashes_.find(key);
  if (crashed == crashes_.end() || crashed->second < kCrashesUntilQuarantine) return std::nullopt;
  return Record{
      experiment,
      Failed{FailureKind::quarantined, concat("it was running in ", crashed->second,
                                              " crashes of the whole run; not tried again")},
      {},
      offset_,
      offset_};
}

Seconds Journal::now() const {
  return offset_ + static_cast<Seconds>(monotonic_ns() - clock_start_ns_) * 1e-9;
}

bool is_journal_in_use(const std::string& path) {
  const FileHandle file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return file && request_lock(file, path) == LockResult::busy;
}

}  // namespace dstune
