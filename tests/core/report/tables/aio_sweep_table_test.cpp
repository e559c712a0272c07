#include "core/report/tables/aio_sweep_table.hpp"

#include <string>

#include <gtest/gtest.h>

#include "core/base/json.hpp"

namespace dstune::aio_sweep_table_test {
namespace {

AioSweepReport make_report() {
  AioSweepReport report;
  report.directory = "/ssd";
  report.file_system = "ext4";
  report.drive = "nvme0n1 (Fast)";
  report.budget = Bytes{4} << 30U;
  report.written = Bytes{3} << 30U;
  report.read = Bytes{2} << 30U;
  report.operation = Bytes{128} << 20U;
  report.elapsed = 12.5;
  report.points = {{AioSettings{.queue_depth = 32}, {1e9, 1e9}, {2e9}},
                   {AioSettings{.block_size = Bytes{8} << 20U}, {3e9}, {}}};
  report.best = report.points.front().settings;
  report.sustained = {.first_write = 2e9, .second_write = 1.5e9, .read = 1e9};
  report.notes = {"mind this"};
  return report;
}

TEST(FormatAioSweep, ShowsPointsTheSectionAndWhatWasWritten) {
  EXPECT_EQ(
      format_aio_sweep(make_report()),
      "| block (MiB) | queue_depth | intra_op_parallelism | single_submit | overlap_events | read "
      "(GB/s) | write (GB/s) |      |\n"
      "| ----------: | ----------: | -------------------: | ------------: | -------------: | "
      "----------: | -----------: | ---- |\n"
      "|           1 |          32 |                    1 |            no |            yes |       "
      " "
      "1.00 |         2.00 | best |\n"
      "|           8 |           8 |                    1 |            no |            yes |       "
      " "
      "3.00 |            - |      |\n\n"
      "Whole file with the best: written at 2.00, then 1.50 GB/s, read at 1.00 GB/s.\n\n"
      "\"aio\": {\n"
      "  \"block_size\": 1048576,\n"
      "  \"queue_depth\": 32,\n"
      "  \"intra_op_parallelism\": 1,\n"
      "  \"single_submit\": false,\n"
      "  \"overlap_events\": true\n"
      "}\n\n"
      "3.00 GiB of at most 4.00 GiB were written to /ssd (ext4, nvme0n1 (Fast)) and 2.00 GiB read "
      "in 12.50 s, in operations of 128.00 MiB; what was read was checked.\n");
}

TEST(FormatAioSweep, HasNoSectionWhereNoneWasFound) {
  AioSweepReport report = make_report();
  report.best.reset();
  report.points.clear();
  report.drive.clear();

  EXPECT_EQ(
      format_aio_sweep(report),
      "No section was found: the drive was too slow for the time that a sweep has.\n\n"
      "3.00 GiB of at most 4.00 GiB were written to /ssd (ext4) and 2.00 GiB read in 12.50 s, "
      "in operations of 128.00 MiB; what was read was checked.\n");
}

TEST(AioSweepToJson, HasEverything) {
  EXPECT_EQ(
      to_json_text(to_json(make_report()), 0),
      R"({"aio":{"block_size":1048576,"queue_depth":32,"intra_op_parallelism":1,)"
      R"("single_submit":false,"overlap_events":true},"directory":"/ssd","file_system":"ext4",)"
      R"~("drive":"nvme0n1 (Fast)","budget_bytes":4294967296,"bytes_written":3221225472,)~"
      R"("bytes_read":2147483648,"operation_bytes":134217728,"elapsed_s":12.5,"points":[)"
      R"({"aio":{"block_size":1048576,"queue_depth":32,"intra_op_parallelism":1,)"
      R"("single_submit":false,"overlap_events":true},)"
      R"("read_bytes_per_s":[1000000000.0,1000000000.0],"write_bytes_per_s":[2000000000.0]},)"
      R"({"aio":{"block_size":8388608,"queue_depth":8,"intra_op_parallelism":1,)"
      R"("single_submit":false,"overlap_events":true},"read_bytes_per_s":[3000000000.0],)"
      R"("write_bytes_per_s":[]}],"sustained":{"first_write_bytes_per_s":2000000000.0,)"
      R"("second_write_bytes_per_s":1500000000.0,"read_bytes_per_s":1000000000.0},)"
      R"("notes":["mind this"]})");
}

TEST(AioSweepToJson, WhatWasNotMeasuredIsNull) {
  AioSweepReport report = make_report();
  report.best.reset();
  report.sustained = {};

  const json::object object = to_json(report);

  EXPECT_TRUE(object.at("aio").is_null());
  EXPECT_TRUE(object.at("sustained").at("read_bytes_per_s").is_null());
}

}  // namespace
}  // namespace dstune::aio_sweep_table_test
