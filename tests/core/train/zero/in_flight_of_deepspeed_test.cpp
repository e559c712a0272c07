// The most that stage 3 may have in flight beside the real DeepSpeed's, by the waits of its host:
// tests/data/deepspeed_in_flight.json, written by scripts/make_in_flight_fixture.py.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/files/file.hpp"
#include "core/base/json.hpp"
#include "core/base/json_parser.hpp"
#include "core/config/model/read_model_spec.hpp"
#include "core/device/dry/dry_collectives.hpp"
#include "core/device/dry/dry_device.hpp"
#include "core/experiment/step_config.hpp"
#include "core/train/training_step.hpp"
#include "tests/support/test_data.hpp"

namespace dstune::in_flight_of_deepspeed_test {
namespace {

/// Looks at what is in flight before anything can end it.
class WatchedDevice final : public DryDevice {
 public:
  using DryDevice::DryDevice;

  /// The most since the last call.
  Bytes take_most() { return std::exchange(most_, 0); }

 protected:
  void account(const Work& /*work*/) override { look(); }

 private:
  void do_host_wait(const Event& /*event*/) override { look(); }
  void do_synchronize() override { look(); }
  void look() { most_ = std::max(most_, memory().in_flight()); }

  Bytes most_ = 0;
};

struct InFlight {
  Bytes first_step = 0;
  Bytes last_step = 0;
};

InFlight walk(const json::object& row, const json::object& root) {
  const auto ranks = root.at("ranks").to_number<int>();
  Problems problems("deepspeed_in_flight.json");
  std::vector<std::string> warnings;
  RunSettings settings;
  settings.model = read_model_object(root.at("models").at(row.at("model").as_string()).as_object(),
                                     "model", "", problems, warnings)
                       .value();
  settings.sequence_length = root.at("sequence_length").to_number<std::int64_t>();
  json::object config = row.at("ds_config").as_object();
  config["train_batch_size"] = 2 * ranks;
  WatchedDevice device(Bytes{1} << 40U);
  DryCollectives collectives(device, 0, ranks);
  TrainingStep step(settings, make_step_config(config), device, collectives);
  device.take_most();
  InFlight found;
  step.run();
  found.first_step = device.take_most();
  for (int i = 0; i < 3; ++i) {
    device.take_most();
    step.run();
  }
  found.last_step = device.take_most();
  return found;
}

TEST(InFlightOfDeepSpeed, IsThatOfTheDryStep) {
  const json::object root =
      parse_json(read_text_file(test::test_data("deepspeed_in_flight.json"))).as_object();
  for (const json::value& value : root.at("rows").as_array()) {
    const json::object& row = value.as_object();

    const InFlight ours = walk(row, root);

    EXPECT_EQ(ours.first_step, row.at("first_step_bytes").to_number<Bytes>())
        << row.at("name").as_string();
    EXPECT_EQ(ours.last_step, row.at("last_step_bytes").to_number<Bytes>())
        << row.at("name").as_string();
  }
}

}  // namespace
}  // namespace dstune::in_flight_of_deepspeed_test
