#include "core/report/journal/journal.hpp"

#include <chrono>
#include <ctime>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/report/journal/journal_line.hpp"
#include "core/report/journal/journal_reader.hpp"

namespace dstune {

namespace {

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
  return failed == nullptr ||
         (failed->kind != FailureKind::worker_lost && failed->kind != FailureKind::wrong_sums);
}

}  // namespace

Journal::Journal(const std::string& path, Mode mode, const RunIdentity& identity, bool force,
                 Seconds lock_patience, const RunProcess& process, SignOfLife other_lives,
                 EarlierJournal* earlier)
    : file_(path, mode == Mode::create ? JournalFile::Open::create : JournalFile::Open::existing,
            lock_patience, std::move(other_lives)),
      clock_start_ns_(monotonic_ns()),
      learnt_(identity.learnt) {
  if (mode == Mode::resume) read_existing(identity, force, earlier);
  clock_start_ns_ = monotonic_ns();
  RunIdentity own = identity;
  own.learnt = learnt_;
  json::object run = {{"identity", to_json(own)}, {"process", to_json(process)}};
  if (mode == Mode::replace) {
    past_processes_ = read_own_journal(file_.read(), path).processes;
    file_.replace(make_line("run", std::move(run)));
  } else {
    append("run", std::move(run));
  }
  sync_parent_directory(path);
}

void Journal::read_existing(const RunIdentity& identity, bool force, EarlierJournal* earlier) {
  const std::string text = file_.read();
  const bool is_known = earlier != nullptr && earlier->text == text;
  JournalContent content =
      is_known ? std::move(earlier->content) : read_own_journal(text, file_.path());
  check_identity(content.identity, identity, force);
  for (const auto& warning : describe_damage(content, file_.path())) log_warning(warning);
  const bool is_empty_of_ours = content.whole_lines.empty() && !text.empty();
  if (!content.damaged.empty() || is_empty_of_ours) {
    const std::string copy = back_up_journal(file_.path(), text);
    file_.replace(std::move(content.whole_lines));
    log_warning(
        concat("what was on damaged lines is measured again; the original file is kept in ", copy));
  } else {
    file_.adopt(std::move(content.whole_lines));
  }
  if (!content.identity && !content.records.empty()) {
    log_warning(
        "the line that names model and machine is lost; the results are assumed to belong to the "
        "present ones");
  }
  if (content.identity) learnt_ = content.identity->learnt;
  offset_ = content.end;
  crashes_ = std::move(content.crashes);
  names_ = std::move(content.names);
  past_processes_ = std::move(content.processes);
  for (std::size_t i = 0; i < content.records.size(); ++i) {
    remember(std::move(content.records[i]), std::move(content.keys[i]));
  }
}

void Journal::check_identity(const std::optional<RunIdentity>& recorded, const RunIdentity& found,
                             bool force) const {
  if (!recorded) return;
  for (const auto& remark : identity_remarks(*recorded, found)) {
    log_warning(concat(file_.path(), ": ", remark));
  }
  auto problems = differences(*recorded, found);
  if (problems.empty()) return;
  if (force) {
    for (const auto& problem : problems) {
      log_warning(concat("results are mixed: ", problem.where, " ", problem.what));
    }
    return;
  }
  problems.push_back({"--resume",
                      "would mix these results; use --overwrite to start over, another "
                      "--results-dir, or --force-resume to mix them"});
  throw ConfigError(file_.path(), std::move(problems));
}

std::string Journal::make_line(const char* type, json::object content) const {
  json::object line = {
      {"schema", kJournalSchema}, {"type", type}, {"time", utc_now()}, {"at_s", now()}};
  for (auto& member : content) line[member.key()] = std::move(member.value());
  return seal_line(line) + "\n";
}

void Journal::append(const char* type, json::object content) {
  file_.append(make_line(type, std::move(content)));
}

void Journal::started(const Experiment& experiment, const std::vector<int>& ranks) {
  json::array world_ranks;
  for (const int rank : ranks) world_ranks.emplace_back(rank);
  names_.insert(experiment.name);
  append("started", {{"experiment", to_json(experiment)}, {"ranks", std::move(world_ranks)}});
}

void Journal::finished(const Record& record) {
  append("finished", to_json(record));
  remember(record, record.experiment.key());
}

void Journal::stopped() { append("stopped", {}); }

void Journal::remember(Record record, std::string key) {
  if (need_not_be_repeated(record.outcome)) finished_[std::move(key)] = records_.size();
  records_.push_back(std::move(record));
}

std::optional<Record> Journal::find(const Experiment& experiment) const {
  const std::string key = experiment.key();
  if (const auto found = finished_.find(key); found != finished_.end()) {
    Record record = records_[found->second];
    const Seconds give_up_above = record.experiment.give_up_above;
    record.experiment = experiment;
    record.experiment.give_up_above = give_up_above;  // that with which it was measured
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

void Journal::forget_failures() {
  std::erase_if(finished_, [this](const auto& entry) {
    return may_be_tried_again(records_[entry.second].outcome);
  });
  crashes_.clear();
  for (auto& record : records_) record.failed_tries.clear();
}

Seconds Journal::now() const {
  return offset_ + static_cast<Seconds>(monotonic_ns() - clock_start_ns_) * 1e-9;
}

}  // namespace dstune
