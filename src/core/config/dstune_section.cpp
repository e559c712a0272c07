#include "core/config/dstune_section.hpp"

#include <algorithm>
#include <filesystem>

#include "core/base/text.hpp"
#include "core/config/host/read_host_overhead.hpp"
#include "core/config/model/read_fine_tuning.hpp"
#include "core/config/model/read_lengths.hpp"
#include "core/config/model/read_loss.hpp"
#include "core/config/model/read_model_spec.hpp"
#include "core/config/model/read_task.hpp"
#include "core/config/read_watch.hpp"
#include "core/config/search_keys.hpp"
#include "core/config/tuners.hpp"
#include "core/device/backend_list.hpp"
#include "core/device/memory/memory_budget.hpp"
#include "core/input/section_reader.hpp"
#include "core/train/families/families.hpp"

namespace dstune {

namespace {

using namespace rules;  // NOLINT(google-build-using-namespace): the table reads like a document

constexpr std::int64_t kMostSteps = 1'000'000'000;
constexpr double kMostSeconds = 60;
constexpr std::int64_t kMostRanks = 1'000'000;

constexpr KeyRule kDstuneRules[] = {
    any("model"),
    any("trainable"),
    any("lora"),
    choice("task", kTaskChoices),
    integer("sequence_length", 2, kMostSteps),
    integer("target_sequence_length", 2, kMostSteps),
    any("lengths"),
    any("memory_limit"),
    any("host_memory_limit"),
    any("pinned_limit"),
    any("drive_limit"),
    text("nvme_path"),
    any("offload"),
    choice("allocator", "exact|caching"),
    integer("ranks_per_experiment", 1, kMostRanks).or_null(),
    choice("backend", kBackendChoices),
    integer("warmup_steps", 0, kMostSteps),
    integer("measure_steps", 1, kMostSteps),
    boolean("whole_steps"),
    within("warmup_seconds", 0, kMostSeconds),
    within("measure_seconds", 0, kMostSeconds),
    above("experiment_timeout", 0),
    integer("seed"),
    boolean("dropout"),
    within("expert_imbalance", 0, 10).or_null(),
    choice("attention", "sdpa|eager|eager_torch1.10|flash"),
    text("trainer"),
    choice("loss", "plain|chunked|tiled|fused"),
    boolean("keep_logits"),
    boolean("zero_init"),
    any("activation_checkpointing"),  // read by read_checkpointing, for it may be a list to search
    boolean("share_gpu"),
    above("worker_timeout", 5),
    text("host_overhead"),
    text("deepspeed_version"),  // read by read_deepspeed_version, before the rest of the file
    any("space"),               // these four are read by core/config/space
    any("precision"),
    any("variables"),
    any("zip"),
    boolean("prune_dominated"),
    choice("tuner", kTunerNames),
    fraction("stop_at_chance"),
    any("time_budget"),
    any("objective"),
    any("preflight"),
    any("exclude"),
    boolean("learnt"),
};
constexpr Section kDstune{.rules = kDstuneRules};

std::optional<Bytes> read_limit(const SectionReader& reader, const std::string& key,
                                Problems& problems) {
  const json::value* const found = reader.find(key);
  if (found == nullptr) return std::nullopt;
  const json::value& value = *found;
  std::optional<Bytes> size;
  if (value.is_string()) {
    size = parse_bytes(std::string_view(value.get_string()));
  } else if (const auto bytes = as_integer(value); bytes && *bytes > 0) {
    size = static_cast<Bytes>(*bytes);
  }
  if (size && *size > 0) return size;
  problems.add(child("/dstune", key),
               concat("is ", describe(value),
                      "; accepted: a size above 0 such as \"4GiB\", or an integer of bytes"));
  return std::nullopt;
}

std::optional<ModelSpec> read_model_value(const json::value& value, const std::string& source,
                                          Problems& problems, ModelRemarks& remarks) {
  constexpr const char* kPointer = "/dstune/model";
  if (value.is_object()) {
    return read_model_object(value.get_object(), "inline", kPointer, problems, remarks);
  }
  if (value.is_string() && !value.get_string().empty()) {
    const std::filesystem::path folder = std::filesystem::path(source).parent_path();
    return read_model_name(json::value_to<std::string>(value), {folder, "."}, kPointer, problems,
                           remarks);
  }
  problems.add(kPointer,
               concat("is ", describe(value),
                      "; accepted: a preset or its name on the hub (dstune-mpi --list-models), "
                      "the path of a Hugging Face config.json, or such an object"));
  return std::nullopt;
}

std::optional<ModelSpec> find_model(const SectionReader& reader, const CommandLine& options,
                                    const std::string& source, Problems& problems,
                                    ModelRemarks& remarks) {
  if (options.model) {
    const auto* const own = reader.find("model");
    if (own != nullptr && *own != json::value(*options.model)) {
      remarks.warnings.push_back(concat("--model ", *options.model, " overrides /dstune/model",
                                        ", which is ", describe(*own)));
    }
    const std::filesystem::path folder = std::filesystem::path(source).parent_path();
    return read_model_name(*options.model, {".", folder}, "--model", problems, remarks);
  }
  if (const auto* value = reader.find("model")) {
    return read_model_value(*value, source, problems, remarks);
  }
  problems.add("/dstune/model",
               "is missing; accepted: a preset or its name on the hub (dstune-mpi --list-models), "
               "the path of a Hugging Face config.json, or such an object; or --model");
  return std::nullopt;
}

// Its remarks go where the configuration's are.
std::optional<ModelSpec> read_model(const SectionReader& reader, const CommandLine& options,
                                    TuningConfig& config, Problems& problems) {
  ModelRemarks remarks;
  auto model = find_model(reader, options, config.source, problems, remarks);
  for (auto& warning : remarks.warnings) config.warnings.push_back(std::move(warning));
  for (auto& note : remarks.notes) config.notes.push_back(std::move(note));
  const bool has_note = !remarks.task_note.empty() && reader.find("task") == nullptr;
  if (has_note) config.notes.push_back(std::move(remarks.task_note));
  config.model_source = std::move(remarks.source);
  return model;
}

void read_target_length(const SectionReader& reader, ModelSpec& model, Problems& problems) {
  const bool given = reader.find("target_sequence_length") != nullptr;
  if (given && model.task != Task::seq2seq_lm) {
    problems.add("/dstune/target_sequence_length",
                 concat("is for models that make a sequence from another (seq2seq_lm), not for ",
                        name_of(model.task)));
  }
  reader.read("target_sequence_length", model.target_length);
  if (model.target_length <= model.max_positions) return;
  problems.add(
      "/dstune/target_sequence_length",
      concat("is ", model.target_length, "; accepted: an integer from 2 to ", model.max_positions));
}

// Real DeepSpeed always pays it, so it is only left out on request.
void read_overhead(const SectionReader& reader, TuningConfig& config, Problems& problems) {
  std::string name = "default";
  reader.read("host_overhead", name);
  const std::filesystem::path folder = std::filesystem::path(config.source).parent_path();
  config.host_overhead = read_host_overhead(name, {folder, "."}, "/dstune/host_overhead", problems);
}

void read_allocator(const SectionReader& reader, TuningConfig& config) {
  std::string name;
  reader.read("allocator", name);
  config.allocator = allocator_from(name);
}

void check_flash(const ModelSpec& model, Problems& problems) {
  if (family_of(model).eager_only) {
    problems.add("/dstune/attention",
                 concat("is \"flash\"; accepted: \"eager\", and \"sdpa\", which is eager too: "
                        "transformers has no other for ",
                        model.family));
  } else if (model.task == Task::seq2seq_lm) {
    problems.add("/dstune/attention",
                 concat("is \"flash\", which transformers does not have for models of type ",
                        in_quotes(model.family),
                        ": it takes no bias of scores; accepted: \"sdpa\", \"eager\""));
  }
}

void read_attention(const SectionReader& reader, RunSettings& settings, Problems& problems) {
  std::string name(name_of(settings.attention));
  reader.read("attention", name);
  settings.attention = attention_kind_from(name).value_or(settings.attention);
  if (settings.attention == AttentionKind::flash) check_flash(settings.model, problems);
}

bool has_experts(const ModelSpec& model) {
  constexpr std::string_view kBlock = "SparseMoeBlock";
  const auto modules = make_model_parameters(model).modules;
  return std::any_of(modules.begin(), modules.end(), [&](const ModuleSpec& module) {
    return module.class_name.find(kBlock) != std::string::npos;
  });
}

void read_imbalance(const SectionReader& reader, ModelSpec& model, Problems& problems) {
  reader.read("expert_imbalance", model.expert_imbalance);
  if (!model.expert_imbalance || has_experts(model)) return;
  problems.add("/dstune/expert_imbalance",
               concat("is ", *model.expert_imbalance, ", but no layer of ", model.name,
                      " has experts; accepted: nothing"));
}

void drop_dropout(ModelSpec& model) {
  model.embedding_dropout = 0;
  model.attention_dropout = 0;
  model.residual_dropout = 0;
  model.classifier_dropout = 0;
}

}  // namespace

bool read_dstune(const json::value& section, const CommandLine& options, TuningConfig& config,
                 Problems& problems) {
  const SectionReader reader(section.is_null() ? json::value(json::object()) : section, kDstune,
                             "/dstune", problems);
  RunSettings& settings = config.settings;
  settings.backend = "auto";
  reader.read("backend", settings.backend);
  reader.read("warmup_steps", settings.warmup_steps);
  reader.read("measure_steps", settings.measure_steps);
  reader.read("whole_steps", settings.whole_steps);
  reader.read("warmup_seconds", config.warmup_seconds);
  reader.read("measure_seconds", config.measure_seconds);
  reader.read("experiment_timeout", settings.experiment_timeout);
  reader.read("seed", settings.seed);
  reader.read("worker_timeout", config.worker_timeout);
  reader.read("ranks_per_experiment", config.ranks_per_experiment);
  settings.memory_limit = read_limit(reader, "memory_limit", problems).value_or(0);
  config.host_memory_limit = read_limit(reader, "host_memory_limit", problems);
  config.pinned_limit = read_limit(reader, "pinned_limit", problems);
  config.drive_limit = read_limit(reader, "drive_limit", problems);
  if (const auto* offload = reader.find("offload")) {
    config.offload = read_offload_search(*offload, problems);
  }
  reader.read("nvme_path", config.offload.nvme_path);
  if (!config.offload.nvme_path.empty() && !config.offload.nvme_path.starts_with('/')) {
    problems.add("/dstune/nvme_path",
                 concat("is ", in_quotes(config.offload.nvme_path),
                        ", which is another folder wherever a process is started; accepted: an "
                        "absolute path"));
  }
  check_drive(config.offload, problems);
  if (options.memory_limit) settings.memory_limit = *options.memory_limit;
  if (options.ranks_per_experiment) config.ranks_per_experiment = options.ranks_per_experiment;
  if (options.backend) settings.backend = *options.backend;
  reader.read("share_gpu", settings.share_gpu);
  settings.share_gpu = settings.share_gpu || options.share_gpu;
  settings.loss = read_loss(reader, problems);

  read_overhead(reader, config, problems);
  read_allocator(reader, config);
  read_search_keys(reader, config, problems);
  read_watch(reader, config, problems);
  reader.read("learnt", config.learnt);

  const auto model = read_model(reader, options, config, problems);
  if (!model) return false;
  settings.model = *model;
  read_task(reader, "/dstune/task", settings.model, problems);
  read_fine_tuning(reader, settings.model, problems);
  check_loss(settings.loss, settings.model.task, problems);
  bool dropout = false;
  reader.read("dropout", dropout);
  if (!dropout) drop_dropout(settings.model);
  read_imbalance(reader, settings.model, problems);
  read_attention(reader, settings, problems);
  read_lengths(reader, config, problems);
  read_target_length(reader, settings.model, problems);
  return true;
}

}  // namespace dstune
