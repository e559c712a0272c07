#include "core/report/tables/standing.hpp"

#include <algorithm>
#include <cmath>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "core/base/json.hpp"
#include "core/base/text.hpp"

namespace dstune {
namespace {

json::object to_json(const BestNumbers& numbers) {
  return {{"step_time_s", numbers.step_time},
          {"samples_per_s", numbers.samples_per_s},
          {"tokens_per_s", numbers.tokens_per_s},
          {"flops_per_s_per_rank", numbers.flops_per_s_per_rank},
          {"peak_memory_bytes", numbers.peak_memory}};
}

BestNumbers numbers_from_json(const json::object& object) {
  const auto number = [&](const char* key) { return object.at(key).to_number<double>(); };
  return {number("step_time_s"), number("samples_per_s"), number("tokens_per_s"),
          number("flops_per_s_per_rank"), object.at("peak_memory_bytes").to_number<Bytes>()};
}

/// The value of `key`; nullptr if there is none, or null.
const json::value* given(const json::object& object, const char* key) {
  const json::value* const value = object.if_contains(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::string running_line(const Standing& standing, Seconds now) {
  if (standing.running.empty()) {
    return "  runs now: no experiment, since the next one is being chosen\n";
  }
  std::vector<std::string> names;
  for (const RunningExperiment& each : standing.running) {
    names.push_back(concat(each.name, " since ", rough_time(std::max(0.0, now - each.since))));
  }
  return concat("  runs now: ", join(names, ", "), '\n');
}

}  // namespace

BestNumbers numbers_of(const Measured& measured) {
  return {typical_step_time(measured), measured.samples_per_s, measured.tokens_per_s,
          measured.flops_per_s_per_rank, measured.peak_memory.allocated};
}

json::object to_json(const Standing& standing) {
  json::array running;
  for (const RunningExperiment& each : standing.running) {
    running.push_back(json::object{{"name", each.name}, {"since_s", each.since}});
  }
  json::object object = {{"running", std::move(running)},
                         {"expected_experiments", nullptr},
                         {"time_left_s", nullptr},
                         {"best_numbers", nullptr},
                         {"last_event", nullptr}};
  if (standing.expected) object["expected_experiments"] = *standing.expected;
  if (standing.time_left) object["time_left_s"] = *standing.time_left;
  if (standing.best) object["best_numbers"] = to_json(*standing.best);
  if (!standing.last_event.empty()) {
    object["last_event"] =
        json::object{{"at_s", standing.last_event_at}, {"text", standing.last_event}};
  }
  return object;
}

Standing standing_from_json(const json::object& object) {
  Standing standing;
  if (const auto* const running = given(object, "running")) {
    for (const json::value& each : running->as_array()) {
      standing.running.push_back(
          {std::string(each.at("name").as_string()), each.at("since_s").to_number<double>()});
    }
  }
  if (const auto* const expected = given(object, "expected_experiments")) {
    standing.expected = expected->to_number<int>();
  }
  if (const auto* const left = given(object, "time_left_s")) {
    standing.time_left = left->to_number<double>();
  }
  if (const auto* const best = given(object, "best_numbers")) {
    standing.best = numbers_from_json(best->as_object());
  }
  if (const auto* const event = given(object, "last_event")) {
    standing.last_event = std::string(event->at("text").as_string());
    standing.last_event_at = event->at("at_s").to_number<double>();
  }
  return standing;
}

std::string rough_time(Seconds time) {
  constexpr double kMinute = 60;
  constexpr long long kMinutes = 60;
  if (time < 0.5) return "under 1 s";
  if (time < 2 * kMinute) return concat(std::llround(time), " s");
  const long long minutes = std::llround(time / kMinute);
  if (minutes < 2 * kMinutes) return concat(minutes, " min");
  return concat(minutes / kMinutes, " h ", minutes % kMinutes, " min");
}

std::string describe(const BestNumbers& numbers) {
  return concat(format_seconds(numbers.step_time), " a step, ",
                fixed(numbers.samples_per_s, numbers.samples_per_s < 1 ? 3 : 1),
                " samples/s, peak ", format_bytes(numbers.peak_memory));
}

std::string describe(const Standing& standing, const std::string& best, Seconds now) {
  std::string text = running_line(standing, now);
  if (standing.best && !best.empty()) {
    text += concat("  best so far: ", best, ", ", describe(*standing.best), '\n');
  }
  if (!standing.last_event.empty()) {
    text += concat("  last, ", rough_time(std::max(0.0, now - standing.last_event_at)),
                   " ago: ", standing.last_event, '\n');
  }
  return text;
}

}  // namespace dstune
