#include <cmath>
#include <variant>

#include "core/base/text.hpp"
#include "core/report/tables/axes.hpp"
#include "core/report/tables/explain.hpp"
#include "core/report/tables/table.hpp"

namespace dstune {

namespace {

using Align = Table::Align;

std::string setting_differences(const Record& record, const Record& other,
                                const std::string& title) {
  Table table(
      {{"setting", Align::left}, {record.experiment.name, Align::left}, {title, Align::left}});
  for (const ResultAxis& axis : varying_axes({record, other})) {
    const auto shown = [&](const Experiment& experiment) {
      const std::string value = axis_value(axis, experiment);
      return value.empty() ? std::string("(default)") : value;
    };
    table.add_row({axis.pointer, shown(record.experiment), shown(other.experiment)});
  }
  return table.empty() ? "The settings are the same.\n" : table.to_string();
}

/// Rows of this and the other experiment, in the order of their first mention.
class Comparison {
 public:
  explicit Comparison(const Record& record, const std::string& title)
      : table_({{"of one step", Align::left}, {record.experiment.name}, {title}, {"difference"}}) {}

  void add_time(const char* what, Seconds own, Seconds other) {
    table_.add_row({concat(what, " (ms)"), fixed(own * 1e3, 2), fixed(other * 1e3, 2),
                    signed_text(fixed((own - other) * 1e3, 2), own >= other)});
  }
  void add_bytes(const std::string& what, double own, double other) {
    if (own == 0 && other == 0) return;
    table_.add_row({what, format_bytes(static_cast<Bytes>(own)),
                    format_bytes(static_cast<Bytes>(other)),
                    signed_text(concat(own < other ? "-" : "",
                                       format_bytes(static_cast<Bytes>(std::abs(own - other)))),
                                own >= other)});
  }
  std::string to_string() const { return table_.to_string(); }

 private:
  static std::string signed_text(const std::string& text, bool positive) {
    return positive ? concat("+", text) : text;
  }

  Table table_;
};

double sent(const Ledger& ledger, Purpose purpose) {
  double bytes = 0;
  for (const CollectiveLine& line : ledger.collectives()) {
    if (line.purpose == purpose) bytes += line.wire_bytes;
  }
  return bytes;
}

double traffic(const Ledger& ledger) {
  double bytes = 0;
  for (const PassLine& line : ledger.passes()) {
    bytes += static_cast<double>(line.read) + static_cast<double>(line.written);
  }
  return bytes;
}

std::string measured_differences(const Record& record, const Measured& own, const Measured& other,
                                 const std::string& title) {
  Comparison rows(record, title);
  rows.add_time("whole step", own.step_time.median, other.step_time.median);
  rows.add_time("forward", own.forward_time, other.forward_time);
  rows.add_time("backward", own.backward_time, other.backward_time);
  rows.add_time("optimizer step", own.optimizer_time, other.optimizer_time);
  rows.add_time("in collectives", own.communication_time, other.communication_time);
  rows.add_time("added to collectives", own.ledger.added_time(), other.ledger.added_time());
  if (own.ledger.library_wait() + other.ledger.library_wait() > 0) {
    rows.add_time("arithmetic in which torch is slower", own.ledger.library_wait(),
                  other.ledger.library_wait());
  }
  rows.add_time("host overhead", own.ledger.host_time(), other.ledger.host_time());
  rows.add_bytes("gradients sent per rank", sent(own.ledger, Purpose::gradients),
                 sent(other.ledger, Purpose::gradients));
  rows.add_bytes("parameters sent per rank", sent(own.ledger, Purpose::parameters),
                 sent(other.ledger, Purpose::parameters));
  rows.add_bytes("persistent parameters sent per rank", sent(own.ledger, Purpose::persistent),
                 sent(other.ledger, Purpose::persistent));
  rows.add_bytes("scales sent per rank", sent(own.ledger, Purpose::scales),
                 sent(other.ledger, Purpose::scales));
  rows.add_bytes("traffic of passes", traffic(own.ledger), traffic(other.ledger));
  for (std::size_t i = 0; i < kMemoryCategories; ++i) {
    const auto category = static_cast<MemoryCategory>(i);
    rows.add_bytes(concat("peak of ", name_of(category)),
                   static_cast<double>(own.peak_memory.categories.at(category)),
                   static_cast<double>(other.peak_memory.categories.at(category)));
  }
  rows.add_bytes("peak of all", static_cast<double>(own.peak_memory.allocated),
                 static_cast<double>(other.peak_memory.allocated));
  if (own.peak_memory.in_flight() + other.peak_memory.in_flight() > 0) {
    rows.add_bytes("peak of active", static_cast<double>(own.peak_memory.active),
                   static_cast<double>(other.peak_memory.active));
  }
  if (own.peak_memory.reserved + other.peak_memory.reserved > 0) {
    rows.add_bytes("peak of reserved", static_cast<double>(own.peak_memory.reserved),
                   static_cast<double>(other.peak_memory.reserved));
  }
  if (own.peak_host_memory.held + other.peak_host_memory.held > 0) {
    rows.add_bytes("peak of the host", static_cast<double>(own.peak_host_memory.held),
                   static_cast<double>(other.peak_host_memory.held));
  }
  return concat("\n", rows.to_string());
}

}  // namespace

std::string explain_differences(const Record& record, const Record& other,
                                const std::string& title) {
  std::string text =
      concat("\nAgainst ", title, ", ", other.experiment.name, ": ", describe(other.outcome),
             "\n\n", setting_differences(record, other, title));
  const auto* own = std::get_if<Measured>(&record.outcome);
  const auto* others = std::get_if<Measured>(&other.outcome);
  if (own != nullptr && others != nullptr) {
    text += measured_differences(record, *own, *others, title);
  }
  return text;
}

}  // namespace dstune
