#include "core/report/tables/progress.hpp"

#include <algorithm>
#include <string_view>
#include <variant>

#include "core/base/line_width.hpp"
#include "core/base/text.hpp"

namespace dstune {
namespace {

/// A name that is shortened to less says nothing any more.
constexpr std::size_t kLeastOfName = 12;
/// Names of what other lines have in full, and of what is followed by a reason.
constexpr std::size_t kShortName = 20;
constexpr std::size_t kLongName = 32;

std::string flops_text(double flops_per_s) {
  return concat(fixed(flops_per_s / 1e9, 1), " GFLOP/s");
}

std::string per_second(double value, const char* unit) {
  return concat(fixed(value, value < 1 ? 3 : 1), unit);
}

/// That an experiment is the best so far, in as many words as have room.
std::string is_best_text(std::size_t room) {
  for (const std::string_view text : {"  (best so far)", "  (best)"}) {
    if (text.size() <= room) return std::string(text);
  }
  return " *";  // as in the result's table
}

}  // namespace

std::string Progress::with_name(const std::string& before, const std::string& name,
                                const std::string& behind) const {
  const std::size_t taken = before.size() + behind.size();
  const std::size_t room = columns_ > taken ? columns_ - taken : 0;
  return concat(before, cut_in_middle(name, std::max(room, kLeastOfName)), behind);
}

void Progress::expect(const Ahead& ahead, Seconds now) {
  ahead_ = ahead;
  expected_ = ahead.experiments ? std::optional(finished_ + *ahead.experiments) : std::nullopt;
  if (!measuring_since_) last_ended_ = now;
}

void Progress::begins(const std::string& name, Seconds now) {
  ends(name);
  running_.push_back({name, now});
}

void Progress::ends(const std::string& name) {
  std::erase_if(running_, [&](const RunningExperiment& each) { return each.name == name; });
}

std::string Progress::first_line(const std::string& name) const {
  if (!expected_ && !ahead_.each) {
    return with_name("first: ", name, "; how many and for how long is not known yet");
  }
  std::string behind = expected_ ? concat(", of about ", *expected_, " experiments; ")
                                 : ", of a number that is not known yet; ";
  if (!ahead_.each) {
    behind += "time per experiment not known yet";
  } else {
    behind += concat("predicted: ", rough_time(*ahead_.each), " each");
    if (const auto left = time_left(last_ended_))
      behind += concat(", ", rough_time(*left), " in all");
  }
  constexpr std::string_view kBefore = "first: ";
  constexpr std::string_view kWhat = " experiments";
  const bool is_wide = kBefore.size() + name.size() + behind.size() > columns_;
  if (expected_ && is_wide) behind.erase(behind.find(kWhat), kWhat.size());
  return with_name(std::string(kBefore), name, behind);
}

std::string Progress::position(Seconds now) const {
  const bool is_known = expected_ && *expected_ >= finished_;
  return concat("[", finished_, is_known ? concat("/~", *expected_) : "", " ", fixed(now, 0),
                "s] ");
}

std::string Progress::numbers(const Measured& measured) const {
  const auto interval = relative_interval(measured);
  std::string text = format_seconds(typical_step_time(measured));
  if (measured.varying) {
    text += concat(", P95 ", format_seconds(measured.varying->p95_step_time));
  } else if (interval) {
    text += concat(" +-", fixed(*interval * 100, 1), " %");
  }
  if (metric_ == Metric::flops) {
    text += concat(", ", flops_text(measured.flops_per_s_per_rank));
  } else if (metric_ == Metric::tokens) {
    text += concat(", ", per_second(measured.tokens_per_s, " tokens/s"));
  } else {
    text += concat(", ", per_second(measured.samples_per_s, " samples/s"));
  }
  return concat(text, ", ", format_bytes(measured.peak_memory.allocated));
}

std::string Progress::line(const Record& record, bool from_journal, Seconds now) {
  ++finished_;
  const std::string& name = record.experiment.name;
  ends(name);
  if (!from_journal) {
    if (!measuring_since_) measuring_since_ = record.started;
    ++measured_here_;
    last_ended_ = now;
  }
  const auto* measured = std::get_if<Measured>(&record.outcome);
  const double value = measured == nullptr ? 0 : metric_value(metric_, *measured);
  std::string verdict;
  const bool is_best = measured != nullptr && (!best_ || is_better(metric_, value, *best_));
  if (is_best) {
    best_ = value;
    best_name_ = name;
    best_numbers_ = numbers_of(*measured);
  } else if (best_) {
    verdict = concat("  (best: ", cut_in_middle(best_name_, kShortName), ")");
  }
  const std::string begin = position(now);
  const std::string origin = from_journal ? " [journal]" : "";
  const std::string result = measured == nullptr ? describe(record.outcome) : numbers(*measured);
  const std::size_t others = begin.size() + 4 + result.size() + origin.size();
  // What ended an experiment is worth more than the best, which other lines say too.
  if (others + name.size() + verdict.size() > columns_) verdict.clear();
  if (is_best) {
    const std::size_t taken = others + std::min(name.size(), kShortName);
    verdict = is_best_text(columns_ - std::min(taken, columns_));
  }
  if (measured != nullptr) {
    last_line_ = with_name(begin, name, concat(" -> ", result, origin, verdict));
  } else {
    const std::string told = concat(begin, cut_in_middle(name, kLongName), " -> ");
    const std::size_t taken = told.size() + origin.size() + verdict.size();
    last_line_ =
        concat(told, cut_in_middle(result, columns_ - std::min(taken, columns_)), origin, verdict);
  }
  last_line_at_ = now;
  return last_line_;
}

std::optional<Seconds> Progress::time_left(Seconds now) const {
  std::optional<Seconds> left;
  const int rest = expected_ ? std::max(0, *expected_ - finished_) : 0;
  std::optional<Seconds> pace;
  if (measured_here_ > 0) {
    pace = (last_ended_ - *measuring_since_) / measured_here_;
  } else if (ahead_.each) {
    pace = *ahead_.each / std::max(1, ahead_.side_by_side);
  }
  if (expected_ && pace) {
    left = std::max(0.0, *pace * rest - std::min(*pace, std::max(0.0, now - last_ended_)));
  }
  if (!time_budget_) return left;
  const Seconds until_then = std::max(0.0, *time_budget_ - now);
  return left ? std::min(*left, until_then) : until_then;
}

std::string Progress::running_line(Seconds now) const {
  const std::string begin = position(now);
  const std::string name = running_.empty() ? "chooses the next" : running_.front().name;
  std::string behind;
  const auto add = [&](const std::string& part) {  // the first are worth the most
    const std::size_t least = std::min(name.size(), kLeastOfName);
    const bool has_room = begin.size() + least + behind.size() + part.size() <= columns_;
    if (has_room) behind += part;
    return has_room;
  };
  if (!running_.empty()) {
    add(concat(" since ", rough_time(std::max(0.0, now - running_.front().since))));
    if (running_.size() > 1) add(concat(" and ", running_.size() - 1, " more"));
  }
  if (const auto left = time_left(now)) add(concat("; about ", rough_time(*left), " left"));
  if (best_ && add(concat("; best ", format_seconds(best_numbers_.step_time), ", ",
                          per_second(best_numbers_.samples_per_s, " samples/s")))) {
    add(concat(" by ", cut_in_middle(best_name_, kShortName)));
  }
  return with_name(begin, name, behind);
}

Standing Progress::standing(Seconds now) const {
  Standing standing;
  standing.running = running_;
  standing.expected = expected_;
  standing.time_left = time_left(now);
  if (best_) standing.best = best_numbers_;
  standing.last_event = last_line_;
  standing.last_event_at = last_line_at_;
  return standing;
}

}  // namespace dstune
