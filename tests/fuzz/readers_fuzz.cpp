// Everything that people and crashes write, read by libFuzzer. The first byte of an input says
// which reader gets the rest: c(onfiguration), m(odel), h(ostfile), j(ournal), p(lan),
// profile of host o(verhead), Y(AML) of trainers.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include "core/base/error.hpp"
#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/config/command_line/hostfile.hpp"
#include "core/config/host/host_profile.hpp"
#include "core/config/model/read_model_spec.hpp"
#include "core/config/trainer/trainer_file.hpp"
#include "core/config/tuning_config.hpp"
#include "core/input/read_json.hpp"
#include "core/input/read_yaml.hpp"
#include "core/report/journal/journal_reader.hpp"
#include "core/search/feasibility/stage_plan.hpp"
#include "core/search/tuners/report/plan_report.hpp"
#include "core/search/tuners/tune.hpp"
#include "core/train/families/families.hpp"

namespace dstune {
namespace {

/// A larger model's plan takes longer than the fuzzer waits: it is instrumented.
constexpr std::int64_t kMostLayers = 8;

/// A file of this process alone, whose path can be opened again and again.
class InputFile {
 public:
  InputFile() : path_(concat("fuzz-input-", getpid(), ".json")) {}
  ~InputFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const noexcept { return path_; }
  void write(std::string_view text) const {
    std::FILE* file = std::fopen(path_.c_str(), "wb");
    if (file == nullptr || std::fwrite(text.data(), 1, text.size(), file) != text.size() ||
        std::fclose(file) != 0) {
      std::abort();
    }
  }

 private:
  std::string path_;
};

TuningConfig read_config(std::string_view text) {
  static const InputFile file;
  file.write(text);
  CommandLine options;
  options.action = CommandLine::Action::plan;
  options.config_path = file.path();
  options.model = "gpt2";  // the file's own is the model reader's
  options.world_size = 8;
  options.results_dir = "results";
  return read_tuning_config(options);
}

void read_model(std::string_view text) {
  Problems problems("model");
  std::vector<std::string> warnings;
  const auto value = parse_config_json(text, "", problems);
  if (!value || !value->is_object()) return;
  const auto spec = read_model_object(value->get_object(), "model", "", problems, warnings);
  if (spec && spec->num_layers <= kMostLayers) make_model_parameters(*spec);
}

void read_hosts(std::string_view text) {
  const Hostfile hosts = parse_hostfile(text, "hosts");
  hosts.workers();
  hosts.workers_on_largest_host();
}

void read_records(std::string_view text) {
  for (const Record& record : read_journal(text, "journal.jsonl").records) to_json(record);
}

void plan(std::string_view text) {
  constexpr int kRanks = 4;
  TuningConfig config = read_config(text);
  config.settings.model.num_layers = 1;
  const auto stages = plan_stages(config, kRanks);
  const auto experiments = plan_experiments(config, kRanks, stages);
  const Machine machine{.group_size = kRanks, .backend = "sim"};
  format_plan_table(config, machine, stages, experiments);
  format_plan_json(config, machine, stages, experiments);
}

void read_overhead(std::string_view text) {
  static const InputFile file;
  file.write(text);
  Problems problems(file.path());
  const auto profile = read_host_profile(file.path(), problems);
  if (!profile) return;
  const json::object object = to_json(profile->overhead);
  if (host_overhead_from_json(object) != profile->overhead) std::abort();
}

void read_trainer(std::string_view text) {
  Problems problems("train.yaml");
  const auto value = parse_config_yaml(text, problems);
  if (!value || !value->is_object()) return;
  const json::object& file = value->get_object();
  if (const auto kind = trainer_of(file)) translate(*kind, file, "train.yaml", problems);
}

void read_by(char reader, std::string_view text) {
  switch (reader) {
    case 'c':
      read_config(text);
      break;
    case 'm':
      read_model(text);
      break;
    case 'h':
      read_hosts(text);
      break;
    case 'j':
      read_records(text);
      break;
    case 'p':
      plan(text);
      break;
    case 'o':
      read_overhead(text);
      break;
    case 'y':
      read_trainer(text);
      break;
    default:
      break;
  }
}

}  // namespace
}  // namespace dstune

// A ConfigError is an answer; anything else that is thrown ends the fuzzer.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return -1;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  try {
    dstune::read_by(input.front(), input.substr(1));
  } catch (const dstune::ConfigError& error) {
    (void)error;
  }
  return 0;
}
