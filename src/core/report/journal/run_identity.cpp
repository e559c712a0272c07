#include "core/report/journal/run_identity.hpp"

#include <utility>

#include <boost/json/value_from.hpp>

#include "core/base/text.hpp"
#include "core/experiment/deepspeed_version.hpp"

namespace dstune {

namespace {

/// Parts of an identity that earlier versions did not write.
constexpr std::pair<const char*, std::string RunIdentity::*> kLaterParts[] = {
    {"program", &RunIdentity::program},
    {"libraries", &RunIdentity::libraries},
    {"mpi", &RunIdentity::mpi}};

}  // namespace

RunIdentity run_identity_from_json(const json::object& object) {
  // Journals of earlier versions do not say it: it was the newest then.
  const std::string deepspeed =
      object.contains("deepspeed") ? text_at(object, "deepspeed") : "0.19.8";
  const auto later = [&](std::string_view key) {
    return object.contains(key) ? text_at(object, key) : "";
  };
  const auto* const threads = object.if_contains("threads_per_rank");
  const auto* const learnt = object.if_contains("learnt");
  const auto* const found = object.if_contains("libraries_found");
  return {own_copy(object.at("model").as_object()),
          text_at(object, "backend"),
          text_at(object, "machine"),
          deepspeed,
          later("program"),
          later("libraries"),
          later("mpi"),
          threads == nullptr ? 0 : threads->to_number<int>(),
          learnt == nullptr ? json::object() : own_copy(learnt->as_object()),
          found == nullptr ? std::vector<std::string>()
                           : json::value_to<std::vector<std::string>>(*found)};
}

json::object to_json(const RunIdentity& identity) {
  json::object object = {
      {"model", identity.model},     {"backend", identity.backend},
      {"machine", identity.machine}, {"deepspeed", identity.deepspeed},
      {"program", identity.program}, {"libraries", identity.libraries},
      {"mpi", identity.mpi},         {"threads_per_rank", identity.threads_per_rank}};
  if (!identity.learnt.empty()) object["learnt"] = identity.learnt;
  if (!identity.libraries_found.empty()) {
    object["libraries_found"] = json::value_from(identity.libraries_found);
  }
  return object;
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
  const auto compare_texts = [&](const char* where, const std::string& before,
                                 const std::string& now) {
    const json::value old_text = json::string(before);
    const json::value new_text = json::string(now);
    compare(where, &old_text, &new_text);
  };
  compare_texts("/backend", recorded.backend, found.backend);
  compare_texts("/machine", recorded.machine, found.machine);
  compare_texts(kVersionPointer, recorded.deepspeed, found.deepspeed);
  for (const auto& [name, part] : kLaterParts) {
    if ((recorded.*part).empty() || (found.*part).empty()) continue;
    compare_texts(concat("/", name).c_str(), recorded.*part, found.*part);
  }
  return problems;
}

std::vector<std::string> identity_remarks(const RunIdentity& recorded, const RunIdentity& found) {
  std::vector<std::string> missing;
  for (const auto& [name, part] : kLaterParts) {
    if ((recorded.*part).empty() && !(found.*part).empty()) missing.emplace_back(name);
  }
  std::vector<std::string> remarks;
  if (!missing.empty()) {
    remarks.push_back(concat("an earlier version wrote it, without ", join(missing, ", "),
                             ": its results are assumed to be of the same"));
  }
  const int before = recorded.threads_per_rank;
  const int now = found.threads_per_rank;
  if (before != 0 && now != 0 && before != now) {
    remarks.push_back(concat("threads per rank are ", now, " now, but were ", before,
                             " there: those results are kept, and measured again where needed"));
  }
  return remarks;
}

}  // namespace dstune
