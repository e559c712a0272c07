#include "core/config/command_line/command_line_options.hpp"

#include <sstream>
#include <string>
#include <vector>

#include <boost/program_options/value_semantic.hpp>

#include "core/base/text.hpp"
#include "core/config/command_line/command_line.hpp"

namespace dstune {

namespace {

namespace po = boost::program_options;

constexpr unsigned kHelpWidth = 80;
constexpr unsigned kDescriptionWidth = 46;

auto value(const char* name) { return po::value<std::string>()->value_name(name); }

po::options_description input_options() {
  po::options_description group("Input and output", kHelpWidth, kDescriptionWidth);
  group.add_options()  //
      ("model", value("NAME|PATH"),
       "a preset, a name on Hugging Face's hub, or a config.json (default: dstune.model of "
       "CONFIG.json); --list-models prints those that are known")                        //
      ("sequence-length", value("N"), "tokens per sequence, as dstune.sequence_length")  //
      ("train-batch-size", value("N"), "as train_batch_size of CONFIG.json")             //
      ("micro-batch-size", value("N"), "as train_micro_batch_size_per_gpu")              //
      ("checkpointing", value("VALUE"),
       "as dstune.activation_checkpointing: false, true, '{\"every_n_layers\": 2}', or a list of "
       "these to tune over")                                                          //
      ("lora-r", value("N"), "train LoRA's adapters of this rank, as dstune.lora.r")  //
      ("results-dir", value("DIR"),
       "journal, tables and ds_config_optimal.json go here (default: autotuning.results_dir, else "
       "a new folder in autotuning_results, named after CONFIG.json and the time; "
       "autotuning_results/latest links to it)")  //
      ("resume",
       "continue the run found in the results directory (default: the last one "
       "of CONFIG.json)")                                                                   //
      ("force-resume", "continue it even if another model or machine measured part of it")  //
      ("requeued",
       "like --resume where --results-dir or CONFIG.json names a results directory, else start "
       "anew; scripts/supervise.sh gives it to a job whose folder is not known")  //
      ("retry-failed",
       "with --resume: measure again what failed, and on every worker; what did not fit stays")  //
      ("overwrite",
       "delete the run found in the results directory (default: the last one of CONFIG.json) and "
       "start over in its place")  //
      ("without", po::value<std::vector<std::string>>()->composing()->value_name("KEY"),
       "leave this key of CONFIG.json out (a name or a JSON pointer), and say so with the optimum; "
       "may be given several times")  //
      ("precision", value("bf16|fp16|fp32"),
       "the precision to train in (default: what CONFIG.json enables; bf16 or fp16 where it says "
       "\"auto\"; else fp32)")  //
      ("installed-deepspeed", value("VERSION"),
       "the DeepSpeed release to tune for, unless dstune.deepspeed_version of CONFIG.json names "
       "one; scripts/tune.sh finds it (default: 0.19.8)")  //
      ("run",
       "once the optimum is found, start the training command with it; scripts/tune.sh does so, "
       "and returns its exit code")  //
      ("emit", po::value<std::vector<std::string>>()->composing()->value_name(kEmittedFormNames),
       "also write the optimum as an Accelerate YAML or as flags of TrainingArguments; may be "
       "given several times")                                                                  //
      ("format", value(kTableFormatNames), "format of the result on stdout (default: table)")  //
      ("wide",
       "the table with every column: all settings that were searched, and why each row is where it "
       "is (default: at most 100 characters per line)");
  return group;
}

po::options_description measurement_options() {
  po::options_description group("Measurement", kHelpWidth, kDescriptionWidth);
  group.add_options()  //
      ("backend", value("NAME"),
       "cpu, cuda, sim, or auto: cuda if every worker has a GPU, else cpu (default: auto)")  //
      ("memory-limit", value("SIZE"),
       "memory of one rank, such as 4GiB (default: what the device has)")               //
      ("ranks-per-experiment", value("N"), "workers of one experiment (default: all)")  //
      ("share-gpu",
       "let several workers train on one GPU, for tests on small machines: the times mean "
       "nothing");
  return group;
}

po::options_description plan_options() {
  po::options_description group("Planning and explaining, without mpirun", kHelpWidth,
                                kDescriptionWidth);
  group.add_options()  //
      ("explain", value("NAME"),
       "print where the time and the memory of this experiment in the results directory go, and "
       "exit; with --plan: what can be said without running it")                           //
      ("check", "check whether CONFIG.json would run, print every error in it, and exit")  //
      ("plan", "print memory per stage and the experiments that would run, and exit")      //
      ("world-size", value("N"), "number of workers to plan or check for")                 //
      ("gpus", value("N"),
       "the same; in a run, mpirun must have started that many")  //
      ("hostfile", value("FILE"), "count them from a host file instead (slots - 1 workers)");
  return group;
}

po::options_description other_options() {
  po::options_description group("Other", kHelpWidth, kDescriptionWidth);
  group.add_options()  //
      ("status", value("DIR"),
       "print whether the run in this results directory (default: in autotuning_results/latest) is "
       "running, dead or finished, and what it is doing, and exit")  //
      ("nvme-sweep", value("DIR"),
       "measure the drive of this directory with the requests of DeepSpeed's NVMe offload, print "
       "the best \"aio\" section, and exit; the only option that writes there, and what it writes "
       "is removed when it ends")                                                         //
      ("nvme-budget", value("SIZE"), "the most that it may write there (default: 4GiB)")  //
      ("progress", value(kProgressStyleNames),
       "how the log shows progress: one line per experiment; on a terminal also a line that is "
       "rewritten; or nothing (default: auto, which depends on stderr)")  //
      ("columns", value("N"),
       "width of the terminal: the log is broken there between words, and a tuning's table is no "
       "wider; scripts/tune.sh gives it (default: a table of 100, and whole lines but for "
       "warnings)")                                    //
      ("verbose,v", "also log what each worker does")  //
      ("list-backends",
       "print which hardware and libraries were found, and for each backend whether it can be used "
       "here, and exit")                                                                    //
      ("list-models", "print the presets and their names on Hugging Face's hub, and exit")  //
      ("version", "print the version and exit")                                             //
      ("help,h", "print this text and exit");
  return group;
}

// Boost leaves a blank where it breaks a line.
std::string without_trailing_blanks(const std::string& text) {
  auto lines = split(text, '\n');
  for (auto& line : lines) line.erase(line.find_last_not_of(' ') + 1);
  return join(lines, "\n");
}

}  // namespace

po::options_description command_line_options() {
  po::options_description all(kHelpWidth, kDescriptionWidth);
  all.add(input_options()).add(measurement_options()).add(plan_options()).add(other_options());
  return all;
}

std::string help_text() {
  std::ostringstream text;
  text << "Finds the fastest DeepSpeed/ZeRO configuration that fits in memory.\n\n"
          "Usage: mpirun -hostfile hosts dstune-mpi [options] CONFIG.json\n"
          "                                         [-- training command]\n"
          "       dstune-mpi --plan (--world-size N | --hostfile FILE) CONFIG.json\n"
          "       dstune-mpi --plan --gpus N --model NAME [CONFIG.json]\n"
          "       dstune-mpi --check [--world-size N | --hostfile FILE] CONFIG.json\n"
          "       dstune-mpi --explain NAME CONFIG.json\n"
          "       dstune-mpi --nvme-sweep DIR [--nvme-budget SIZE]\n\n"
          "       Rank 0 tunes and writes the results; every other rank is one worker.\n"
          "       CONFIG.json is a DeepSpeed configuration with a \"dstune\" section; \"-\" is\n"
          "       standard input. cmd_optimal.txt gets the training command with the\n"
          "       optimum; scripts/tune.sh starts it with --run.\n"
       << command_line_options()
       << "\nExamples:\n"
          "  mpirun -n 3 dstune-mpi --memory-limit 4GiB examples/gpt2.json\n"
          "  dstune-mpi --plan --world-size 8 --model gpt2-xl examples/gpt2.json\n"
          "  dstune-mpi --plan --gpus 8 --model Qwen/Qwen2.5-7B-Instruct\n\n"
          "Exit codes: 0 found, 1 internal error, 2 wrong input, 3 nothing fits in memory,\n"
          "            4 interrupted: --resume continues, 5 --nvme-sweep: the drive failed\n";
  return without_trailing_blanks(text.str());
}

}  // namespace dstune
