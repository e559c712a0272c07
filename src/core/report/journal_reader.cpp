#include "core/report/journal_reader.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>

#include "core/base/error.hpp"
#include "core/base/json_parser.hpp"
#include "core/base/text.hpp"

namespace dstune {

namespace {

constexpr int kSchema = 2;

std::string text_of(const json::object& object, std::string_view key) {
  return std::string(object.at(key).as_string());
}

RunIdentity identity_from_json(const json::object& object) {
  return {object.at("model").as_object(), text_of(object, "backend"), text_of(object, "machine")};
}

Record record_from_json(const json::object& line) {
  Record record;
  record.experiment = experiment_from_json(line.at("experiment").as_object());
  record.outcome = outcome_from_json(line.at("outcome").as_object());
  for (const auto& rank : line.at("ranks").as_array()) {
    record.ranks.push_back(rank.to_number<int>());
  }
  record.started = line.at("started_s").to_number<double>();
  record.finished = line.at("finished_s").to_number<double>();
  return record;
}

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {}

  void read(std::string_view text) {
    std::size_t number = 0;
    while (content_.valid_bytes < text.size()) {
      ++number;
      const std::size_t begin = content_.valid_bytes;
      const std::size_t end = text.find('\n', begin);
      if (end == std::string_view::npos) return;
      try {
        read_line(parse_json(text.substr(begin, end - begin)).as_object());
      } catch (const ConfigError&) {
        throw;
      } catch (const std::exception& fault) {
        if (end + 1 == text.size()) return;
        refuse(number, concat("is damaged (", fault.what(), ")"));
      }
      content_.valid_bytes = end + 1;
    }
  }

  JournalContent finish() {
    end_of_run();  // the run that is resumed ended, or there would be no need to
    return std::move(content_);
  }

 private:
  void read_line(const json::object& line) {
    const auto schema = line.at("schema").to_number<int>();
    if (schema != kSchema) {
      throw ConfigError(path_, {{"/schema", concat("is ", schema,
                                                   ", which another version of "
                                                   "dstune-mpi wrote; accepted: ",
                                                   kSchema, "; use --overwrite to start again")}});
    }
    const std::string type = text_of(line, "type");
    if (type == "run") {
      auto identity = identity_from_json(line.at("identity").as_object());
      end_of_run();
      content_.identity = std::move(identity);
    } else if (type == "started") {
      running_.insert(experiment_from_json(line.at("experiment").as_object()).key());
    } else if (type == "finished") {
      content_.records.push_back(record_from_json(line));
      running_.erase(content_.records.back().experiment.key());
    } else if (type == "stopped") {
      running_.clear();
    } else {
      throw std::invalid_argument(concat("unknown type \"", type, "\""));
    }
    content_.end = std::max(content_.end, line.at("at_s").to_number<double>());
  }

  void end_of_run() {
    for (const auto& key : running_) ++content_.crashes[key];
    running_.clear();
  }

  [[noreturn]] void refuse(std::size_t number, const std::string& what) const {
    throw ConfigError(
        path_, {{concat("line ", number), what + "; use --overwrite to start again, or another "
                                                 "--results-dir"}});
  }

  const std::string& path_;
  JournalContent content_;
  std::set<std::string> running_;
};

}  // namespace

JournalContent read_journal(std::string_view text, const std::string& path) {
  Reader reader(path);
  reader.read(text);
  return reader.finish();
}

json::object to_json(const RunIdentity& identity) {
  return {{"model", identity.model}, {"backend", identity.backend}, {"machine", identity.machine}};
}

json::object to_json(const Record& record) {
  json::array ranks;
  for (const int rank : record.ranks) ranks.emplace_back(rank);
  return {{"experiment", to_json(record.experiment)},
          {"outcome", to_json(record.outcome)},
          {"ranks", std::move(ranks)},
          {"started_s", record.started},
          {"finished_s", record.finished}};
}

std::vector<Problem> differences(const RunIdentity& recorded, const RunIdentity& found) {
  std::vector<Problem> problems;
  const auto compare = [&](const std::string& where, const json::value* old_value,
                           const json::value* new_value) {
    const std::string before = old_value == nullptr ? "absent" : to_json_text(*old_value, 0);
    const std::string now = new_value == nullptr ? "absent" : to_json_text(*new_value, 0);
    if (before != now) {
      problems.push_back({where, concat("is ", now, " now, but was ", before, " there")});
    }
  };
  for (const auto& member : recorded.model) {
    if (member.key() == "name") continue;
    compare(concat("/model/", member.key()), &member.value(),
            found.model.if_contains(member.key()));
  }
  for (const auto& member : found.model) {
    if (member.key() == "name" || recorded.model.contains(member.key())) continue;
    compare(concat("/model/", member.key()), nullptr, &member.value());
  }
  const json::value backends[2] = {json::string(recorded.backend), json::string(found.backend)};
  compare("/backend", &backends[0], &backends[1]);
  const json::value machines[2] = {json::string(recorded.machine), json::string(found.machine)};
  compare("/machine", &machines[0], &machines[1]);
  return problems;
}

}  // namespace dstune
