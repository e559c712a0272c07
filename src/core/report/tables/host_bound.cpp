#include "core/report/tables/host_bound.hpp"

#include <algorithm>
#include <initializer_list>

#include "core/base/text.hpp"
#include "core/base/units.hpp"
#include "core/device/backend_list.hpp"
#include "core/experiment/step_config.hpp"
#include "core/report/tables/table.hpp"

namespace dstune {

namespace {

// There the host's code always takes its time; elsewhere it does while the device idles.
bool is_on_cpu(const Experiment& experiment) {
  return traits_of_backend(experiment.settings.backend).computes_on_host;
}

// What the step would not take if the host's code took no time.
Seconds waits_for_host(const Experiment& experiment, const Measured& measured) {
  return is_on_cpu(experiment) ? measured.ledger.host_time() : measured.ledger.idle_time();
}

Seconds time_of(const Measured& measured, std::initializer_list<HostEvent> events) {
  Seconds sum = 0;
  for (const HostLine& line : measured.ledger.host()) {
    for (const HostEvent event : events) {
      if (line.event == event) sum += line.time;
    }
  }
  return sum;
}

// The smallest divisor above 1 of a number of micro-steps.
std::int64_t smallest_divisor(std::int64_t steps) {
  std::int64_t divisor = 2;
  while (steps % divisor != 0) ++divisor;
  return divisor;
}

struct Remedy {
  std::string text;
  Seconds leaves_out = 0;  ///< of the host's time, at most
};

// What happens in every micro-step, of which the reductions' part does in stages 2 and 3 alone.
Remedy larger_micro_batch(const Experiment& experiment, const Measured& measured) {
  const StepConfig step = make_step_config(experiment);
  if (step.accumulation_steps == 1) {
    return {concat("micro-batch ", 2 * step.micro_batch, ": twice the batch, of as many samples"),
            waits_for_host(experiment, measured) / 2};
  }
  const std::int64_t factor = smallest_divisor(step.accumulation_steps);
  const Seconds of_micro_steps = time_of(
      measured, {HostEvent::operator_forward, HostEvent::operator_backward, HostEvent::module_call,
                 HostEvent::sub_module_hook, HostEvent::gathered_tensor, HostEvent::gradient_hook,
                 HostEvent::collective, HostEvent::micro_step});
  return {concat("micro-batch ", factor * step.micro_batch, ", accumulation ",
                 step.accumulation_steps / factor, ": the same batch"),
          of_micro_steps * (1 - 1 / static_cast<double>(factor))};
}

}  // namespace

std::string host_bound_text(const Experiment& experiment, const Measured& measured) {
  const Seconds total = measured.step_time.median;
  const Seconds waits = waits_for_host(experiment, measured);
  if (total <= 0 || waits < kHostBoundShare * total) return "";
  const auto percent = [&](Seconds time) { return fixed(100 * time / total, 1); };
  Table table({{"what would move it", Table::Align::left}, {"saves of it, at most (ms)"}, {"%"}});
  // Which event the device idles at hangs on how far the host was ahead before: without other
  // events it would have been further ahead, so that their whole time counts.
  const auto add = [&](const Remedy& remedy) {
    const Seconds saves = std::min(waits, remedy.leaves_out);
    if (saves > 0) table.add_row({remedy.text, fixed(saves * 1e3, 2), percent(saves)});
  };
  add(larger_micro_batch(experiment, measured));
  add({"torch.compile: no operators and modules of eager PyTorch",
       time_of(measured, {HostEvent::operator_forward, HostEvent::operator_backward,
                          HostEvent::module_call})});
  add({"half as many modules",
       time_of(measured, {HostEvent::module_call, HostEvent::sub_module_hook}) / 2});
  return concat("\nBound by the host: ", fixed(waits * 1e3, 2), " ms of the step, ", percent(waits),
                " %, ",
                is_on_cpu(experiment) ? "are the training's host code"
                                      : "the device waits for the training's host code",
                table.empty() ? "\n" : concat("\n\n", table.to_string()));
}

}  // namespace dstune
