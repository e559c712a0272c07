#include "tests/support/tiny_experiment.hpp"

#include <boost/json/serialize.hpp>

#include "core/base/text.hpp"

namespace dstune::test {

ModelSpec tiny_model() {
  ModelSpec model;
  model.name = "tiny";
  model.vocab_size = 29;
  model.max_positions = 7;
  model.hidden_size = 6;
  model.num_layers = 2;
  model.num_heads = 2;
  model.inner_size = 11;
  return model;
}

Experiment TinyExperiment::make() const {
  Experiment experiment;
  experiment.name = name();
  experiment.ranks = ranks;
  json::object section = zero;
  section["stage"] = stage;
  json::object config;
  config["train_micro_batch_size_per_gpu"] = micro_batch;
  config["gradient_accumulation_steps"] = accumulation_steps;
  config["train_batch_size"] = micro_batch * accumulation_steps * ranks;
  config["zero_optimization"] = section;
  if (dtype == DType::bf16) config["bf16"] = {{"enabled", true}};
  // A small scale: no step of a test is skipped.
  if (dtype == DType::fp16) config["fp16"] = {{"enabled", true}, {"initial_scale_power", 4}};
  if (!client) config["optimizer"] = {{"type", "AdamW"}, {"params", {{"lr", 1e-3}}}};
  if (!optimizer.empty()) {
    config["optimizer"] = optimizer;
    config["zero_allow_untested_optimizer"] = true;
  }
  for (const auto& [key, value] : root) {
    json::value& present = config[key];
    if (present.is_object() && value.is_object()) {
      for (const auto& [inner, of_it] : value.get_object()) present.get_object()[inner] = of_it;
    } else {
      present = value;
    }
  }
  experiment.ds_config = std::move(config);
  experiment.settings.model = model;
  experiment.settings.devices_per_node = devices_per_node;
  experiment.settings.sequence_length = 5;
  experiment.settings.memory_limit = Bytes{1} << 40U;
  return experiment;
}

std::string TinyExperiment::name() const {
  return concat("stage ", stage, ", ", ranks, " ranks, ", accumulation_steps, " micro-steps, ",
                name_of(dtype), client ? ", client optimizer, " : ", optimizer section, ",
                json::serialize(optimizer), " ", json::serialize(zero), ", ",
                json::serialize(root));
}

}  // namespace dstune::test
