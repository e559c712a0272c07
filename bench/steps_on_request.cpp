// Optimizer steps of one rank on the CPU, each when it is asked for: bench/step_beside_torch.py and
// bench/small_steps_beside_torch.py have PyTorch's in between.
//
// usage: steps_on_request MODEL MICRO_BATCH SEQUENCE THREADS [fp32|bf16 [PROFILE]]
//   MODEL    a preset, a config.json or the folder that holds it
//   PROFILE  of host overhead, of which steps take what is PyTorch's own; without it nothing
// A line of standard input is a step, answered by a line of JSON. Exit code 2: it cannot run.

#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include <time.h>

#include "core/base/json.hpp"
#include "core/config/host/read_host_overhead.hpp"
#include "core/config/model/read_model_spec.hpp"
#include "core/device/dry/dry_collectives.hpp"
#include "core/experiment/step_config.hpp"
#include "core/train/training_step.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/products/blas.hpp"
#include "kernels/cpu/products/choose_products.hpp"

namespace dstune {
namespace {

constexpr Bytes kEnough = Bytes{16} << 30U;

Seconds process_time() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<Seconds>(time.tv_sec) + static_cast<Seconds>(time.tv_nsec) * 1e-9;
}

ModelSpec model_named(const std::string& name) {
  Problems problems("the command line");
  ModelRemarks remarks;
  const auto spec = read_model_name(name, {"."}, "MODEL", problems, remarks);
  for (const std::string& warning : remarks.warnings) std::cerr << warning << "\n";
  problems.throw_if_any();
  return spec.value();
}

StepConfig plain_config(int micro_batch, bool is_bf16) {
  return make_step_config({{"bf16", {{"enabled", is_bf16}}},
                           {"train_batch_size", micro_batch},
                           {"train_micro_batch_size_per_gpu", micro_batch},
                           {"gradient_accumulation_steps", 1},
                           {"gradient_clipping", 1.0},
                           {"zero_optimization", {{"stage", 0}}},
                           {"optimizer", {{"type", "AdamW"}, {"params", {{"lr", 1e-4}}}}}});
}

HostOverhead pytorchs_own(const std::string& profile) {
  Problems problems("the command line");
  const auto whole = read_host_overhead(profile, {"."}, "PROFILE", problems);
  problems.throw_if_any();
  HostOverhead own = whole.value();
  for (std::size_t event = 0; event < kHostEvents; ++event) {
    if (!is_of_pytorch(static_cast<HostEvent>(event))) own.seconds[event] = 0;
  }
  return own;
}

json::object answer(TrainingStep& step) {
  const Seconds begin = process_time();
  const StepReport report = step.run();
  return {{"cpu_s", process_time() - begin}, {"wall_s", report.total},
          {"forward_s", report.forward},     {"backward_s", report.backward},
          {"optimizer_s", report.optimizer}, {"loss", report.loss}};
}

void serve(const std::string& model, int micro_batch, int sequence, int threads, bool is_bf16,
           const std::string& profile) {
  cpu::set_blas_threads(threads);
  cpu::take_blas_memory();
  RunSettings settings;
  settings.model = model_named(model);
  settings.sequence_length = sequence;
  settings.threads_per_rank = threads;
  if (!profile.empty()) settings.host_overhead = pytorchs_own(profile);
  cpu::CpuDevice device(kEnough);
  device.products().use_onednn(cpu::choose_products(cpu::read_product_choice(), threads), threads);
  DryCollectives alone(device, 0, 1);
  TrainingStep step(settings, plain_config(micro_batch, is_bf16), device, alone);
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << to_json_text(answer(step), 0) << std::endl;
  }
}

}  // namespace
}  // namespace dstune

int main(int argc, char** argv) {
  if (argc < 5 || argc > 7) {
    std::cerr
        << "usage: steps_on_request MODEL MICRO_BATCH SEQUENCE THREADS [fp32|bf16 [PROFILE]]\n";
    return 2;
  }
  try {
    dstune::serve(argv[1], std::stoi(argv[2]), std::stoi(argv[3]), std::stoi(argv[4]),
                  argc >= 6 && std::string(argv[5]) == "bf16", argc == 7 ? argv[6] : "");
    return 0;
  } catch (const std::exception& fault) {
    std::cerr << "steps_on_request: " << fault.what() << "\n";
    return 2;
  }
}
