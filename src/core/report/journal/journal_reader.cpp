#include "core/report/journal/journal_reader.hpp"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <set>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/parallel.hpp"
#include "core/base/text.hpp"
#include "core/report/journal/journal_event.hpp"

namespace dstune {

namespace {

using Origin = JournalContent::Origin;

// A model's name is a label, and does not count.
std::string model_text(json::object model) {
  model.erase("name");
  return sorted_json_text(model);
}

constexpr std::size_t kAtOnce = 512;  // lines that are worth reading in threads

// Takes whole lines from the beginning of `text`.
std::vector<std::string_view> take_lines(std::string_view& text, std::size_t most) {
  std::vector<std::string_view> lines;
  while (lines.size() < most) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) break;
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return lines;
}

// Bytes that did not reach the disk before a power loss are zeros.
bool may_be_remnant(std::string_view text) {
  return begins_like_line(text.substr(0, text.find('\0')));
}

class Reader {
 public:
  enum class Until { end, origin_is_known };

  explicit Reader(const std::string& path) : path_(path) {}

  void read(std::string_view text, Until until = Until::end) {
    const std::size_t at_once = until == Until::end ? kAtOnce : 1;
    if (until == Until::end) content_.whole_lines.reserve(text.size());
    const bool may_be_ours = may_be_remnant(text);
    std::size_t number = 0;
    while (!text.empty()) {
      const std::vector<std::string_view> lines = take_lines(text, at_once);
      if (lines.empty()) {
        read_torn_line(number + 1, text);
        break;
      }
      std::vector<JournalEvent> events(lines.size());
      for_each_in_parallel(lines.size(), [&](std::size_t i) { events[i] = event_from(lines[i]); });
      for (std::size_t i = 0; i < lines.size(); ++i) try_line(++number, lines[i], events[i]);
      if (until == Until::origin_is_known && content_.origin == Origin::ours) return;
    }
    if (content_.origin != Origin::ours && !may_be_ours) content_.origin = Origin::foreign;
    if (content_.origin != Origin::ours && other_schema_) refuse_schema(*other_schema_);
  }

  JournalContent finish() {
    end_of_run();  // the run that is resumed ended, or there would be no need to
    return std::move(content_);
  }

 private:
  void read_torn_line(std::size_t number, std::string_view text) {
    content_.torn = is_torn_line(text);
    if (!content_.torn) skip(number, open_line(text).damage);
  }

  void try_line(std::size_t number, std::string_view text, JournalEvent& event) {
    if (!event.line.content) return skip(number, event.line.damage);
    try {
      check_schema(event.line);
      if (event.fault) std::rethrow_exception(event.fault);
      read_event(event);
    } catch (const ConfigError&) {
      throw;
    } catch (const Unbelievable& fault) {
      return skip(number, fault.what());
    } catch (const std::exception&) {
      return skip(number,
                  "it is not an event of a run");  // Boost's reason would name its own source
    }
    content_.origin = Origin::ours;
    content_.whole_lines.append(text).push_back('\n');
  }

  void skip(std::size_t number, const std::string& cause) {
    content_.damaged.push_back({number, cause.empty() ? "its end is missing" : cause});
    running_.clear();  // it may have said that they ended
  }

  // Once there are checksums, a line without one is none of ours.
  void check_schema(const JournalLine& line) {
    const auto schema = line.content->at("schema").to_number<int>();
    constexpr int kNewest = 1000;  // beyond it nobody wrote it
    if (line.sealed && schema > kJournalSchema && schema <= kNewest) refuse_schema(schema);
    const int expected = line.sealed ? kJournalSchema : kUnsealedJournalSchema;
    if (schema != expected) {
      if (!line.sealed && schema != kJournalSchema) other_schema_ = schema;
      throw Unbelievable(line.sealed || schema != kJournalSchema ? concat("its schema is ", schema)
                                                                 : "its checksum is missing");
    }
    if (sealed_ && !line.sealed) throw Unbelievable("its checksum is missing");
    sealed_ = sealed_ || line.sealed;
  }

  void read_event(JournalEvent& event) {
    const json::object& line = *event.line.content;
    if (event.type == "run") {
      read_run(line);
    } else if (event.type == "started") {
      believe_place(*event.experiment, line);
      content_.names.insert(event.experiment->name);
      content_.memory_limit = event.experiment->settings.memory_limit;
      content_.host_memory_limit = event.experiment->settings.host_memory_limit;
      running_.insert(std::move(event.key));
    } else if (event.type == "finished") {
      read_finished(event);
    } else if (event.type == "stopped") {
      running_.clear();
    } else {
      throw Unbelievable("its type is unknown");
    }
    content_.end = std::max(content_.end, event.at);
  }

  void read_finished(JournalEvent& event) {
    Record& record = *event.record;
    believe_place(record.experiment, *event.line.content);
    // Nobody measures again what was measured.
    const bool is_final = !may_be_tried_again(record.outcome);
    if (is_final && !final_.insert(event.key).second) {
      throw Unbelievable("it repeats an earlier result");
    }
    content_.names.insert(record.experiment.name);
    running_.erase(event.key);
    content_.records.push_back(std::move(record));
    content_.keys.push_back(std::move(event.key));
  }

  // Model and backend are those of the run that wrote it, if it says of what model it is.
  void believe_place(const Experiment& experiment, const json::object& line) {
    if (!content_.identity || content_.identity->model.empty()) return;
    const json::value& settings = line.at("experiment").as_object().at("settings");
    const json::object& model = settings.as_object().at("model").as_object();
    if (model != believed_model_) {
      if (model_text(model) != model_) throw Unbelievable("its model is not that of the run");
      believed_model_ = model;
    }
    if (experiment.settings.backend != content_.identity->backend) {
      throw Unbelievable("its backend is not that of the run");
    }
  }

  void read_run(const json::object& line) {
    auto identity = run_identity_from_json(line.at("identity").as_object());
    if (const auto* process = line.if_contains("process")) {
      content_.processes.push_back(run_process_from_json(process->as_object()));
    }
    end_of_run();
    model_ = model_text(identity.model);
    believed_model_ = {};
    content_.identity = std::move(identity);
  }

  void end_of_run() {
    for (const auto& key : running_) ++content_.crashes[key];
    running_.clear();
  }

  [[noreturn]] void refuse_schema(int schema) const {
    throw ConfigError(
        path_, {{"/schema", concat("is ", schema, ", which another version of dstune-mpi wrote; ",
                                   "accepted: ", kUnsealedJournalSchema, " and ", kJournalSchema,
                                   "; use another --results-dir")}});
  }

  const std::string& path_;
  JournalContent content_;
  std::set<std::string> running_;
  std::set<std::string> final_;  // experiments with an outcome that stays
  std::string model_;            // of the run whose lines these are
  json::object believed_model_;  // of the last line whose model was that
  bool sealed_ = false;          // a line with a checksum came before
  std::optional<int> other_schema_;
};

[[noreturn]] void refuse_foreign(const std::string& path) {
  throw ConfigError(path, {{"--results-dir",
                            "has a journal.jsonl that is not dstune-mpi's, so it is not "
                            "touched; choose another --results-dir"}});
}

}  // namespace

JournalContent read_journal(std::string_view text, const std::string& path) {
  Reader reader(path);
  reader.read(text);
  return reader.finish();
}

JournalContent read_own_journal(std::string_view text, const std::string& path) {
  JournalContent content = read_journal(text, path);
  if (content.origin == Origin::foreign) refuse_foreign(path);
  return content;
}

bool is_own_journal(std::string_view text, const std::string& path) {
  Reader reader(path);
  reader.read(text, Reader::Until::origin_is_known);
  const Origin origin = reader.finish().origin;
  if (origin == Origin::foreign) refuse_foreign(path);
  return origin == Origin::ours;
}

std::optional<EarlierJournal> read_earlier_journal(const std::string& path) {
  auto text = read_journal_file(path);
  if (!text) return std::nullopt;
  JournalContent content = read_own_journal(*text, path);
  return EarlierJournal{std::move(*text), std::move(content)};
}

std::vector<std::string> describe_damage(const JournalContent& content, const std::string& path) {
  constexpr std::size_t kMost = 10;
  std::vector<std::string> texts;
  for (const auto& line : content.damaged) {
    if (texts.size() == kMost) break;
    texts.push_back(
        concat(path, ": line ", line.number, " is damaged (", line.cause, "); skipped"));
  }
  if (content.damaged.size() > kMost) {
    texts.push_back(
        concat(path, ": ", content.damaged.size() - kMost, " more lines are damaged; skipped"));
  }
  return texts;
}

json::object to_json(const FailedTry& failed) {
  json::array culprits;
  for (const auto& culprit : failed.culprits) {
    culprits.push_back({{"rank", culprit.rank}, {"host", culprit.host}});
  }
  return {{"ranks", json::array(failed.ranks.begin(), failed.ranks.end())},
          {"culprits", std::move(culprits)},
          {"answered", failed.answered},
          {"reason", failed.reason}};
}

json::object to_json(const Record& record) {
  json::object object = {{"experiment", to_json(record.experiment)},
                         {"outcome", to_json(record.outcome)},
                         {"ranks", json::array(record.ranks.begin(), record.ranks.end())},
                         {"started_s", record.started},
                         {"finished_s", record.finished}};
  if (record.failed_tries.empty()) return object;
  auto& tries = object["failed_tries"].emplace_array();
  for (const auto& failed : record.failed_tries) tries.push_back(to_json(failed));
  return object;
}

}  // namespace dstune
