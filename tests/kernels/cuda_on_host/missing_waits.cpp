// Two steps on two GPUs, in which one stream waits for no event: usage: missing_waits N, the number
// of core/device/stream.hpp; or none. For missing_waits_test.py.
#include <iostream>
#include <string>

#include "core/base/json_parser.hpp"
#include "tests/support/cuda_on_host/control.hpp"
#include "tests/support/knob_grid.hpp"
#include "tests/support/training_run.hpp"

namespace {

void train(int stage) {
  dstune::json::object config = dstune::test::config_of(
      {.stage = stage, .ranks = 2}, R"({"overlap_comm": true, "stage3_prefetch_bucket_size": 700,
        "stage3_param_persistence_threshold": 12, "stage3_max_reuse_distance": 0})");
  // What it computes is nothing where waits are missing.
  dstune::test::on_training_ranks(dstune::make_step_config(config), 2, [](auto& own) {
    for (int step = 0; step < 2; ++step) own.step.run();
  });
}

}  // namespace

int main(int argc, char** argv) {
  cuda_on_host::set_up({.devices = 2, .bytes = std::size_t{2} << 30U});
  if (argc > 1) cuda_on_host::deafen(std::stoi(argv[1]));
  train(argc > 2 ? std::stoi(argv[2]) : 3);
  std::cout << "done\n";
}
