#include "core/report/tables/aio_sweep_table.hpp"

#include <utility>

#include <boost/json/array.hpp>
#include <boost/json/value_from.hpp>

#include "core/base/json.hpp"
#include "core/base/printable.hpp"
#include "core/base/text.hpp"
#include "core/report/tables/table.hpp"

namespace dstune {
namespace {

std::string in_gb(double bytes_per_s) {
  return bytes_per_s > 0 ? fixed(bytes_per_s / 1e9, 2) : std::string("-");
}

const char* yes_or_no(bool value) { return value ? "yes" : "no"; }

void add_point(Table& table, const AioPoint& point, bool is_best) {
  const AioSettings& settings = point.settings;
  table.add_row({concat(settings.block_size >> 20U), concat(settings.queue_depth),
                 concat(settings.intra_op_parallelism), yes_or_no(settings.single_submit),
                 yes_or_no(settings.overlap_events), in_gb(mean_rate(point.read)),
                 in_gb(mean_rate(point.write)), is_best ? "best" : ""});
}

std::string table_of(const AioSweepReport& report) {
  Table table({{"block (MiB)"},
               {"queue_depth"},
               {"intra_op_parallelism"},
               {"single_submit"},
               {"overlap_events"},
               {"read (GB/s)"},
               {"write (GB/s)"},
               {"", Table::Align::left}});
  for (const AioPoint& point : report.points) {
    add_point(table, point, report.best == point.settings);
  }
  return table.empty() ? "" : table.to_string() + "\n";
}

json::value rate_or_null(double bytes_per_s) {
  return bytes_per_s > 0 ? json::value(bytes_per_s) : json::value(nullptr);
}

}  // namespace

std::string format_aio_sweep(const AioSweepReport& report) {
  std::string text = table_of(report);
  if (report.best) {
    const AioSustained& long_run = report.sustained;
    text += concat("Whole file with the best: written at ", in_gb(long_run.first_write), ", then ",
                   in_gb(long_run.second_write), " GB/s, read at ", in_gb(long_run.read),
                   " GB/s.\n\n\"aio\": ", to_json_text(to_json(*report.best), 2), "\n\n");
  }
  if (!report.best) {
    text += "No section was found: the drive was too slow for the time that a sweep has.\n\n";
  }
  const std::string drive = report.drive.empty() ? "" : concat(", ", report.drive);
  return text + concat(format_bytes(report.written), " of at most ", format_bytes(report.budget),
                       " were written to ", printable(report.directory), " (", report.file_system,
                       drive, ") and ", format_bytes(report.read), " read in ",
                       format_seconds(report.elapsed), ", in operations of ",
                       format_bytes(report.operation), "; what was read was checked.\n");
}

json::object to_json(const AioSweepReport& report) {
  json::array points;
  for (const AioPoint& point : report.points) {
    points.push_back(json::object{{"aio", to_json(point.settings)},
                                  {"read_bytes_per_s", json::value_from(point.read)},
                                  {"write_bytes_per_s", json::value_from(point.write)}});
  }
  const AioSustained& long_run = report.sustained;
  json::object sustained{{"first_write_bytes_per_s", rate_or_null(long_run.first_write)},
                         {"second_write_bytes_per_s", rate_or_null(long_run.second_write)},
                         {"read_bytes_per_s", rate_or_null(long_run.read)}};
  return {{"aio", report.best ? json::value(to_json(*report.best)) : json::value(nullptr)},
          {"directory", report.directory},
          {"file_system", report.file_system},
          {"drive", report.drive},
          {"budget_bytes", report.budget},
          {"bytes_written", report.written},
          {"bytes_read", report.read},
          {"operation_bytes", report.operation},
          {"elapsed_s", report.elapsed},
          {"points", std::move(points)},
          {"sustained", std::move(sustained)},
          {"notes", json::value_from(report.notes)}};
}

}  // namespace dstune
