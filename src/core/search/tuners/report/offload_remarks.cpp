#include "core/search/tuners/report/offload_remarks.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/base/units.hpp"
#include "core/experiment/step_config.hpp"
#include "core/train/families/families.hpp"
#include "core/train/zero/layout/parameter_groups.hpp"
#include "core/train/zero/layout/shard_layout.hpp"

namespace dstune {

std::string ratio_remark(const Experiment& experiment) {
  const StepConfig step = make_step_config(experiment);
  if (step.stage != 3 || !step.offloads_optimizer() || step.offload_ratio >= 1) return "";
  const ModelParameters parameters = make_model_parameters(experiment.settings.model);
  const ShardLayout layout(make_parameter_groups(step.optimizer, parameters), parameters,
                           experiment.ranks, step.sub_group_size);
  const std::size_t count = layout.sub_groups().size();
  const std::size_t on_device = step.sub_groups_on_device(count);
  std::string remark =
      concat("offload_optimizer.ratio ", to_json_text(step.offload_ratio, 0), " leaves ", on_device,
             " of a rank's ", count, count == 1 ? " sub-group" : " sub-groups", " on the device");
  const double meant = (1 - step.offload_ratio) * static_cast<double>(count);
  constexpr double kRounding = 1e-9;  // of the product in double
  if (meant - static_cast<double>(on_device) < kRounding) return remark;
  return concat(remark, ", since DeepSpeed rounds down; a smaller sub_group_size (",
                step.sub_group_size, " now, of ", layout.numel(),
                " parameters that a rank steps) gets nearer to it");
}

std::string sums_remark(const Record& best) {
  const Measured* measured = measured_of(best);
  if (measured == nullptr || make_step_config(best.experiment).dtype != DType::bf16) return "";
  Bytes bytes = 0;
  for (const TransferLine& line : measured->ledger.transfers()) {
    if (line.purpose == TransferPurpose::gradient_sum) bytes += line.bytes;
  }
  if (bytes == 0) return "";
  const std::int64_t parameters =
      make_model_parameters(best.experiment.settings.model).trainable_total();
  const Bytes sums = 4 * static_cast<Bytes>(parameters) / static_cast<Bytes>(best.experiment.ranks);
  return concat(format_bytes(bytes),
                " of a step's copies are sums of its micro-steps; with data_types.grad_accum_dtype "
                "\"fp32\" they stay on the device, where they take ",
                format_bytes(sums),
                ", and the host does not wait for them: worth a trial, with "
                "bf16.check_grad_overflow false, since DeepSpeed 0.19.8 otherwise skips all steps "
                "after one with inf or NaN");
}

std::string drive_remark(const Record& best) {
  const Measured* measured = measured_of(best);
  if (measured == nullptr) return "";
  Bytes of_rank = 0;
  for (const TransferLine& line : measured->ledger.transfers()) {
    if (line.transfer == Transfer::nvme_write) of_rank += line.bytes;
  }
  if (of_rank == 0) return "";
  const int of_node = best.experiment.settings.devices_per_node;
  const int ranks = of_node > 0 ? std::min(of_node, best.experiment.ranks) : best.experiment.ranks;
  constexpr double kSecondsPerHour = 3600;
  constexpr double kHoursPerDay = 24;
  constexpr double kEndurance = 600e12;  // bytes, of many drives of 1 TB
  const double per_hour =
      static_cast<double>(of_rank) * ranks / measured->step_time.median * kSecondsPerHour;
  return concat("each step writes ", format_bytes(of_rank),
                " per rank to the drive, at this speed ", fixed(per_hour / 1e12, 2),
                " TB an hour for the ", ranks, ranks == 1 ? " rank" : " ranks",
                " of a node: ", fixed(kEndurance / per_hour / kHoursPerDay, 1),
                " days for a drive rated for 600 TB of writes");
}

}  // namespace dstune
