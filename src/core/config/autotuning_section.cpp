#include "core/config/autotuning_section.hpp"

#include "core/base/text.hpp"
#include "core/config/deepspeed/deepspeed_keys.hpp"
#include "core/config/deepspeed/deepspeed_table.hpp"
#include "core/config/model/model_info.hpp"
#include "core/config/tuners.hpp"
#include "core/input/section_reader.hpp"

namespace dstune {

namespace {

using namespace rules;  // NOLINT(google-build-using-namespace): the table reads like a document

constexpr std::int64_t kMostTrials = 1'000'000'000;
constexpr std::int64_t kMostSizes = 1000;  // of one stage: all are listed before the first runs
constexpr std::int64_t kLargestGroup = 1'000'000;

constexpr KeyRule kAutotuningRules[] = {
    boolean("enabled"),
    boolean("fast"),
    text("results_dir"),
    text("exps_dir"),
    boolean("overwrite"),
    integer("start_profile_step", 0, kMostTrials),
    integer("end_profile_step", 0, kMostTrials),
    choice("metric", kMetrics),
    choice("tuner_type", kDeepspeedTunerNames),
    integer("tuner_early_stopping", 1, kMostTrials),
    integer("tuner_num_trials", 1, kMostTrials),
    integer("max_train_batch_size", 1, kLargestBatch).or_null(),
    integer("min_train_batch_size", 1, kLargestBatch),
    integer("max_train_micro_batch_size_per_gpu", 1, kLargestBatch),
    integer("min_train_micro_batch_size_per_gpu", 1, kLargestBatch),
    integer("num_tuning_micro_batch_sizes", 1, kMostSizes),
    integer("mp_size", 1, kLargestGroup),
    object("arg_mappings").or_null(),
    object("model_info").or_null(),
    text("metric_path").or_null(),
    text("model_info_path").or_null(),
};
constexpr Section kAutotuning{
    .rules = kAutotuningRules, .other_keys = true, .other_keys_warning = deepspeed_table::kUnknown};

/// A flag is "--batch" or "-b", a blank text is none. Any other text would add words of the file to
/// the command.
bool is_flag(std::string_view text) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
  const std::string flag(trim(text));
  if (flag.empty()) return true;
  const auto name = flag.find_first_not_of('-');
  return (name == 1 || name == 2) && flag.find_first_not_of(kLetters) == std::string::npos;
}

void check_arg_mappings(const json::object& mappings, Problems& problems) {
  for (const auto& member : mappings) {
    const auto* const text = member.value().if_string();
    if (text != nullptr && is_flag(*text)) continue;
    problems.add(child("/autotuning/arg_mappings", std::string_view(member.key())),
                 concat("is ", describe(member.value()),
                        "; accepted: the option of the training command, such as \"--batch\""));
  }
}

void check_order(const char* low_key, std::int64_t low, const char* high_key, std::int64_t high,
                 Problems& problems) {
  if (low <= high) return;
  problems.add(child("/autotuning", low_key),
               concat("is ", low, ", above ", high_key, ", which is ", high));
}

void check_orders(const AutotuningConfig& config, Problems& problems) {
  check_order("start_profile_step", config.start_profile_step, "end_profile_step",
              config.end_profile_step, problems);
  check_order("min_train_micro_batch_size_per_gpu", config.min_train_micro_batch_size_per_gpu,
              "max_train_micro_batch_size_per_gpu", config.max_train_micro_batch_size_per_gpu,
              problems);
  if (config.max_train_batch_size) {
    check_order("min_train_batch_size", config.min_train_batch_size, "max_train_batch_size",
                *config.max_train_batch_size, problems);
  }
}

}  // namespace

Metric metric_of(std::string_view name) {
  if (name == "latency") return Metric::latency;
  if (name == "tokens") return Metric::tokens;
  return name == "flops" ? Metric::flops : Metric::throughput;
}

AutotuningConfig read_autotuning(const json::value& section, Problems& problems,
                                 std::vector<std::string>& warnings) {
  const SectionReader reader(section, kAutotuning, "/autotuning", problems);
  AutotuningConfig config;
  reader.read("enabled", config.enabled);
  reader.read("fast", config.fast);
  reader.read("results_dir", config.results_dir);
  config.has_own_results_dir = reader.find("results_dir") != nullptr;
  reader.read("exps_dir", config.exps_dir);
  config.has_own_exps_dir = reader.find("exps_dir") != nullptr;
  reader.read("overwrite", config.overwrite);
  reader.read("start_profile_step", config.start_profile_step);
  reader.read("end_profile_step", config.end_profile_step);
  std::string metric = "throughput";
  reader.read("metric", metric);
  config.metric = metric_of(metric);
  reader.read("tuner_type", config.tuner_type);
  config.tuner_type_given = reader.find("tuner_type") != nullptr;
  reader.read("tuner_early_stopping", config.tuner_early_stopping);
  reader.read("tuner_num_trials", config.tuner_num_trials);
  reader.read("max_train_batch_size", config.max_train_batch_size);
  reader.read("min_train_batch_size", config.min_train_batch_size);
  reader.read("max_train_micro_batch_size_per_gpu", config.max_train_micro_batch_size_per_gpu);
  reader.read("min_train_micro_batch_size_per_gpu", config.min_train_micro_batch_size_per_gpu);
  reader.read("num_tuning_micro_batch_sizes", config.num_tuning_micro_batch_sizes);
  reader.read("mp_size", config.mp_size);
  if (const auto* mappings = reader.find("arg_mappings")) {
    config.arg_mappings = mappings->get_object();
    check_arg_mappings(config.arg_mappings, problems);
  }
  if (const auto* info = reader.find("model_info")) {
    config.model_info = read_model_info(*info, "/autotuning/model_info", problems);
  }
  for (const char* key : {"metric_path", "model_info_path"}) {
    if (reader.find(key) == nullptr) continue;
    warnings.push_back(concat("/autotuning/", key,
                              " is not used: it is where DeepSpeed's own experiments leave their "
                              "numbers; here they are in results_dir"));
  }
  check_orders(config, problems);
  return config;
}

}  // namespace dstune
