// The memory of every loss beside what torch's allocator says of the originals, which
// scripts/measure_loss_memory.py has run.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/files/file.hpp"
#include "core/base/json.hpp"
#include "core/base/json_parser.hpp"
#include "core/base/text.hpp"
#include "core/device/dry/dry_device.hpp"
#include "tests/support/head_run.hpp"
#include "tests/support/test_data.hpp"

namespace dstune::loss_memory_test {
namespace {

using test::HeadRun;
using test::HeadSizes;

/// Bytes beside those that are there when the last hidden states are.
struct Peaks {
  double forward;
  double saved;  ///< between forward and backward
  double backward;
};

Peaks peaks_of(const HeadSizes& sizes, DType dtype, LossSettings loss) {
  DryDevice device(Bytes{1} << 40U);
  HeadRun run(sizes, dtype, loss, device, {.is_tied = true});  // the gradient stays
  run.engine.keeps_gradients = false;
  if (loss.keep_logits) {  // those of the step before
    run.forward();
    run.backward(1);
  }
  MemoryBudget& memory = device.memory();
  Buffer x = run.hidden_states();
  const auto start = static_cast<double>(memory.in_use());
  memory.reset_peak();
  run.forward(std::move(x));
  const auto forward = static_cast<double>(memory.peak().allocated);
  const auto saved = static_cast<double>(memory.in_use());
  memory.reset_peak();
  run.backward(1);
  return {forward - start, saved - start, static_cast<double>(memory.peak().allocated) - start};
}

TEST(LossMemory, PeaksAreThoseOfTorch) {
  const json::object table =
      parse_json(read_text_file(test::test_data("loss_memory.json"))).as_object();
  const auto size = [&](const char* key) { return table.at(key).to_number<std::int64_t>(); };
  for (const json::value& value : table.at("rows").as_array()) {
    const json::object& row = value.as_object();
    const LossSettings loss{*loss_from(std::string_view(row.at("loss").as_string())),
                            row.at("keep_logits").as_bool()};
    const DType dtype = row.at("dtype").as_string() == "bf16" ? DType::bf16 : DType::fp32;
    const HeadSizes sizes{size("micro_batch"), size("sequence_length"),
                          row.at("vocab_size").to_number<std::int64_t>(),
                          row.at("hidden_size").to_number<std::int64_t>()};
    SCOPED_TRACE(to_json_text(row, 0));
    const auto torch = [&](const char* key) { return row.at(key).to_number<double>(); };

    const Peaks peaks = peaks_of(sizes, dtype, loss);

    const double tolerance = 0.01 * std::max(torch("forward"), torch("backward"));
    EXPECT_NEAR(peaks.forward, torch("forward"), tolerance);
    EXPECT_NEAR(peaks.saved, torch("saved"), tolerance);
    EXPECT_NEAR(peaks.backward, torch("backward"), tolerance);
  }
}

}  // namespace
}  // namespace dstune::loss_memory_test
