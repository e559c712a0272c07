#include "core/config/command_line/command_line.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "core/base/text.hpp"
#include "core/config/command_line/argument_scanner.hpp"
#include "core/device/backend_list.hpp"
#include "core/input/key_rules.hpp"
#include "core/input/read_text.hpp"

namespace dstune {

namespace {

constexpr std::int64_t kMostRanks = 1'000'000;
constexpr std::int64_t kLargest = 1'000'000'000;  ///< of a length, and of a batch
constexpr std::int64_t kHighestRank = 1'000'000;  ///< of LoRA
constexpr std::int64_t kLeastColumns = 40;        ///< numbers, which are not cut, take them
constexpr std::int64_t kMostColumns = 1'000;

// Typed values of what was given; each wrong one is a problem at its flag.
class Reader {
 public:
  Reader(const Given& given, Problems& problems) : given_(given), problems_(problems) {}

  bool has(const char* name) const { return given_.options.count(name) > 0; }

  std::optional<std::string> text(const char* name) { return text(name, rules::text(name)); }

  std::optional<std::string> choice(const char* name, const char* choices) {
    return text(name, rules::choice(name, choices));
  }

  TableFormat format() {
    const auto name = choice("format", kTableFormatNames);
    if (!name) return TableFormat::table;
    return static_cast<TableFormat>(find_row(kTableFormats, *name) - kTableFormats);
  }

  std::vector<std::string> list(const char* name) { return list(name, rules::text(name)); }

  std::vector<std::string> choices(const char* name, const char* choices) {
    return list(name, rules::choice(name, choices));
  }

  std::optional<int> count(const char* name) {
    const auto number = integer(name, 1, kMostRanks);
    return number ? std::optional(static_cast<int>(*number)) : std::nullopt;
  }

  std::optional<std::int64_t> integer(const char* name, std::int64_t least, std::int64_t most) {
    if (!has(name)) return std::nullopt;
    const std::string& word = given_.options.at(name);
    std::int64_t number = 0;
    const auto [end, fault] = std::from_chars(word.data(), word.data() + word.size(), number);
    const bool is_number = fault == std::errc() && end == word.data() + word.size();
    const auto checked = check_value(is_number ? json::value(number) : json::value(word),
                                     rules::integer(name, least, most), flag(name), problems_);
    return checked ? std::optional(checked->get_int64()) : std::nullopt;
  }

  std::optional<Bytes> size(const char* name) {
    if (!has(name)) return std::nullopt;
    const std::string& word = given_.options.at(name);
    auto bytes = parse_bytes(word);
    if (bytes && *bytes > 0) return bytes;
    problems_.add(flag(name), concat("is ", in_quotes(word),
                                     "; accepted: a size above 0 such as 4GiB, or bytes"));
    return std::nullopt;
  }

 private:
  static std::string flag(const char* name) { return concat("--", name); }

  std::vector<std::string> list(const char* name, const KeyRule& rule) {
    const auto found = given_.lists.find(name);
    if (found == given_.lists.end()) return {};
    for (const auto& word : found->second) {
      check_value(json::value(word), rule, flag(name), problems_);
    }
    return found->second;
  }

  std::optional<std::string> text(const char* name, const KeyRule& rule) {
    if (!has(name)) return std::nullopt;
    const std::string& word = given_.options.at(name);
    if (!check_value(json::value(word), rule, flag(name), problems_)) return std::nullopt;
    return word;
  }

  const Given& given_;
  Problems& problems_;
};

// What CONFIG.json has keys for.
void read_training(Reader& reader, CommandLine& options) {
  options.model = reader.text("model");
  options.sequence_length = reader.integer("sequence-length", 2, kLargest);
  options.train_batch_size = reader.integer("train-batch-size", 1, kLargest);
  options.micro_batch_size = reader.integer("micro-batch-size", 1, kLargest);
  options.checkpointing = reader.text("checkpointing");
  options.lora_rank = reader.integer("lora-r", 1, kHighestRank);
  options.precision = reader.choice("precision", "bf16|fp16|fp32");
}

void read_options(Reader& reader, CommandLine& options) {
  read_training(reader, options);
  options.memory_limit = reader.size("memory-limit");
  options.ranks_per_experiment = reader.count("ranks-per-experiment");
  options.backend = reader.choice("backend", kBackendChoices);
  options.results_dir = reader.text("results-dir");
  options.installed_deepspeed = reader.text("installed-deepspeed");
  options.without = reader.list("without");
  options.force_resume = reader.has("force-resume");
  options.resume = reader.has("resume") || options.force_resume;
  options.requeued = reader.has("requeued");
  options.overwrite = reader.has("overwrite");
  options.retry_failed = reader.has("retry-failed");
  options.share_gpu = reader.has("share-gpu");
  options.run = reader.has("run");
  for (const auto& name : reader.choices("emit", kEmittedFormNames)) {
    const EmittedFormTraits* form = find_row(kEmittedForms, name);
    if (form != nullptr) options.emit.insert(static_cast<EmittedForm>(form - kEmittedForms));
  }
  options.verbose = reader.has("verbose");
  options.format = reader.format();
  options.wide = reader.has("wide");
  options.gpus = reader.count("gpus");
  if (const auto name = reader.choice("progress", kProgressStyleNames)) {
    const auto styles = split(kProgressStyleNames, '|');
    const auto style = std::find(styles.begin(), styles.end(), *name) - styles.begin();
    options.progress = static_cast<ProgressStyle>(style);
  }
  const auto columns = reader.integer("columns", kLeastColumns, kMostColumns);
  if (columns) options.columns = static_cast<std::size_t>(*columns);
  options.world_size = reader.count("world-size");
  if (!options.world_size) options.world_size = options.gpus;
  options.hostfile = reader.text("hostfile");
  options.explain = reader.text("explain");
  if (options.explain) options.action = CommandLine::Action::explain;
  if (reader.has("check")) options.action = CommandLine::Action::check;
  if (reader.has("plan")) options.action = CommandLine::Action::plan;
  options.status_dir = reader.text("status");
  if (options.status_dir) options.action = CommandLine::Action::status;
  options.nvme_sweep = reader.text("nvme-sweep");
  if (options.nvme_sweep) options.action = CommandLine::Action::nvme_sweep;
  options.nvme_budget = reader.size("nvme-budget").value_or(kDefaultNvmeBudget);
}

void check_combinations(const Reader& reader, const CommandLine& options, Problems& problems) {
  if (options.resume && options.overwrite) {
    problems.add("--overwrite", concat("cannot be combined with ",
                                       options.force_resume ? "--force-resume" : "--resume"));
  }
  if (options.retry_failed && !options.resume) {
    problems.add("--retry-failed", "only applies to a resumed run; add --resume");
  }
  if (reader.has("check") && (reader.has("plan") || reader.has("explain"))) {
    problems.add("--check",
                 concat("cannot be combined with ", reader.has("plan") ? "--plan" : "--explain"));
  }
  if (options.hostfile == kStandardInput && options.config_path == kStandardInput) {
    problems.add("--hostfile",
                 "is -, and so is CONFIG.json; only one of them can be standard input");
  }
  if (options.gpus && options.gpus != options.world_size) {
    problems.add("--gpus", concat("is ", *options.gpus, ", but --world-size is ",
                                  *options.world_size, "; give only one of the two"));
  }
  const bool plans = reader.has("plan") || reader.has("check");
  const bool has_size = reader.has("world-size") || (plans && options.gpus);
  const bool has_file = reader.has("hostfile");
  if (plans) {
    if (has_size && has_file) {
      problems.add("--hostfile",
                   concat("cannot be combined with ", options.gpus ? "--gpus" : "--world-size"));
    }
    if (reader.has("plan") && !has_size && !has_file) {
      problems.add("--plan",
                   "needs the number of workers: --world-size N, --gpus N or --hostfile FILE");
    }
    return;
  }
  if (has_size)
    problems.add("--world-size", "is only for --plan and --check; otherwise mpirun sets it");
  if (has_file)
    problems.add("--hostfile",
                 "is only for --plan and --check; otherwise give mpirun its own -hostfile");
}

// It writes to a drive, so that nothing else may have been meant.
void check_nvme_sweep(const Reader& reader, const Given& given, const CommandLine& options,
                      Problems& problems) {
  if (!reader.has("nvme-sweep")) {
    if (reader.has("nvme-budget")) {
      problems.add("--nvme-budget", "is only for --nvme-sweep DIR");
    }
    return;
  }
  if (options.nvme_budget < kLeastNvmeBudget) {
    problems.add("--nvme-budget",
                 concat("is ", format_bytes(options.nvme_budget), "; accepted: at least ",
                        format_bytes(kLeastNvmeBudget), ", such as 4GiB"));
  }
  for (const char* other : {"plan", "check", "explain", "status", "run", "resume", "force-resume",
                            "retry-failed", "overwrite", "emit"}) {
    if (reader.has(other)) {
      problems.add("--nvme-sweep", concat("cannot be combined with --", other));
    }
  }
  if (!given.positional.empty()) {
    problems.add(in_quotes(given.positional.front()),
                 "is an extra argument: --nvme-sweep DIR needs no CONFIG.json");
  }
}

void read_positional(const Given& given, CommandLine& options, Problems& problems) {
  const bool is_plan = options.action == CommandLine::Action::plan;
  if (given.positional.empty() && is_plan && options.model) return;
  if (given.positional.empty()) {
    problems.add("CONFIG.json",
                 concat("is missing",
                        is_plan ? ", and so is --model NAME, with which --plan needs no file" : "",
                        "; see dstune-mpi --help"));
    return;
  }
  options.config_path = given.positional.front();
  if (options.config_path.empty()) problems.add("CONFIG.json", "is an empty path");
  for (std::size_t i = 1; i < given.positional.size(); ++i) {
    problems.add(in_quotes(given.positional[i]),
                 concat("is an extra argument after ", in_quotes(options.config_path),
                        "; a training command goes after --"));
  }
}

/// NAME=VALUE, as a shell takes it before a command.
bool is_assignment(std::string_view word) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
  const auto end = word.find_first_not_of(kLetters);
  return end != std::string_view::npos && end > 0 && word[end] == '=' &&
         (word.front() < '0' || word.front() > '9');
}

bool are_assignments(const std::vector<std::string>& words) {
  return !words.empty() && std::all_of(words.begin(), words.end(), is_assignment);
}

}  // namespace

CommandLine parse_command_line(const std::vector<std::string>& arguments) {
  Problems problems("command line");
  Given given = scan_arguments(arguments, problems);
  Reader reader(given, problems);
  CommandLine options;
  // Who asks for help gets it, whatever else is wrong.
  constexpr std::pair<const char*, CommandLine::Action> kQuestions[] = {
      {"help", CommandLine::Action::help},
      {"version", CommandLine::Action::version},
      {"list-backends", CommandLine::Action::list_backends},
      {"list-models", CommandLine::Action::list_models}};
  for (const auto& [name, action] : kQuestions) {
    if (!reader.has(name)) continue;
    options.action = action;
    options.format = reader.format();
    return options;
  }
  read_options(reader, options);
  if (options.run && (!given.has_separator || are_assignments(given.training_command))) {
    problems.add("--run", "has nothing to start; the training command goes after --");
  }
  check_nvme_sweep(reader, given, options, problems);
  const bool needs_file = !options.status_dir && !reader.has("nvme-sweep");
  if (needs_file) read_positional(given, options, problems);
  check_combinations(reader, options, problems);
  problems.throw_if_any();
  options.training_command = std::move(given.training_command);
  return options;
}

std::string version_text() { return "dstune-mpi " DSTUNE_VERSION; }

}  // namespace dstune
