#include "core/search/tuners/report/ratio_remark.hpp"

#include <cstddef>
#include <cstdint>

#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/experiment/step_config.hpp"
#include "core/train/families/families.hpp"
#include "core/train/zero/layout/parameter_groups.hpp"
#include "core/train/zero/layout/shard_layout.hpp"

namespace dstune {

std::string ratio_remark(const Experiment& experiment) {
  const StepConfig step = make_step_config(experiment);
  if (step.stage != 3 || !step.offload_optimizer || step.offload_ratio >= 1) return "";
  const ModelParameters parameters = make_model_parameters(experiment.settings.model);
  const ShardLayout layout(make_parameter_groups(step.optimizer, parameters), parameters,
                           experiment.ranks, step.sub_group_size);
  const std::size_t count = layout.sub_groups().size();
  const std::size_t on_device = step.sub_groups_on_device(count);
  std::string remark =
      concat("offload_optimizer.ratio ", to_json_text(step.offload_ratio, 0), " leaves ", on_device,
             " of a rank's ", count, count == 1 ? " sub-group" : " sub-groups", " on the device");
  const double meant = (1 - step.offload_ratio) * static_cast<double>(count);
  if (static_cast<double>(on_device) == meant) return remark;
  return concat(remark, ", since DeepSpeed rounds down; a smaller sub_group_size (",
                step.sub_group_size, " now, of ", layout.numel(),
                " parameters that a rank steps) gets nearer to it");
}

}  // namespace dstune
