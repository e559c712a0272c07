#include "core/report/journal/journal_event.hpp"

#include <utility>
#include <vector>

#include "core/base/text.hpp"
#include "core/report/journal/record_checks.hpp"

namespace dstune {

namespace {

std::vector<int> ranks_from_json(const json::value& value) {
  std::vector<int> ranks;
  for (const auto& rank : value.as_array()) ranks.push_back(rank.to_number<int>());
  return ranks;
}

FailedTry failed_try_from_json(const json::object& object) {
  FailedTry failed{ranks_from_json(object.at("ranks")),
                   {},
                   object.at("answered").as_bool(),
                   text_at(object, "reason")};
  for (const auto& value : object.at("culprits").as_array()) {
    const json::object& culprit = value.as_object();
    failed.culprits.push_back({culprit.at("rank").to_number<int>(), text_at(culprit, "host")});
  }
  return failed;
}

Record record_from_json(const json::object& line) {
  Record record;
  record.experiment = experiment_from_json(line.at("experiment").as_object());
  record.outcome = outcome_from_json(line.at("outcome").as_object());
  record.ranks = ranks_from_json(line.at("ranks"));
  record.started = line.at("started_s").to_number<double>();
  record.finished = line.at("finished_s").to_number<double>();
  if (const auto* tries = line.if_contains("failed_tries")) {
    for (const auto& failed : tries->as_array()) {
      record.failed_tries.push_back(failed_try_from_json(failed.as_object()));
    }
  }
  return record;
}

void believe(const std::string& forgery) {
  if (!forgery.empty()) throw Unbelievable(forgery);
}

void believe_name(const std::string& name) {
  if (!is_folder_name(name)) throw Unbelievable("the experiment's name is not a folder name");
}

void read_content(const json::object& content, JournalEvent& event) {
  event.at = content.at("at_s").to_number<double>();
  believe(find_forgery("at_s", event.at));
  event.type = text_at(content, "type");
  if (event.type == "started") {
    event.experiment = experiment_from_json(content.at("experiment").as_object());
    believe(find_forged_number(content));
    believe_name(event.experiment->name);
    event.key = event.experiment->key();
  } else if (event.type == "finished") {
    event.record = record_from_json(content);
    believe(find_forgery(*event.record));
    believe(find_forged_number(content));
    believe_name(event.record->experiment.name);
    event.key = event.record->experiment.key();
  }
}

}  // namespace

JournalEvent event_from(std::string_view text) {
  JournalEvent event;
  event.line = open_line(text);
  if (!event.line.content) return event;
  try {
    read_content(*event.line.content, event);
  } catch (const std::exception&) {
    event.fault = std::current_exception();
  }
  return event;
}

}  // namespace dstune
