#include "core/config/command_line/argument_scanner.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include <boost/program_options/cmdline.hpp>
#include <boost/program_options/options_description.hpp>
#include <boost/program_options/value_semantic.hpp>

#include "core/base/text.hpp"
#include "core/config/command_line/command_line.hpp"
#include "core/config/command_line/command_line_options.hpp"
#include "core/input/key_rules.hpp"

namespace dstune {

namespace {

namespace po = boost::program_options;

// Boost's parser throws at the first fault and knows abbreviations; here every fault is wanted and
// no guess, so only its table of options is used.
class Scanner {
 public:
  Scanner(const std::vector<std::string>& arguments, Problems& problems)
      : arguments_(arguments), problems_(problems) {}

  Given scan() {
    while (next_ < arguments_.size() && !given_.has_separator) {
      const std::string& argument = arguments_[next_++];
      if (argument == "--") {
        take_training_command();
      } else if (argument.size() > 1 && argument.front() == '-') {
        take_option(argument);
      } else {
        given_.positional.push_back(argument);
      }
    }
    return std::move(given_);
  }

 private:
  void take_training_command() {
    given_.has_separator = true;
    const auto begin = arguments_.begin() + static_cast<std::ptrdiff_t>(next_);
    given_.training_command.assign(begin, arguments_.end());
    if (given_.training_command.empty()) {
      problems_.add("--", "has nothing after it; accepted: the training command");
    }
  }

  void take_option(const std::string& argument) {
    const auto equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const auto* const option = find(name);
    if (option == nullptr && take_option_of_mpirun(argument)) return;
    if (option == nullptr) {
      problems_.add(name, concat("is unknown", suggestion(name, flags())));
      return;
    }
    const bool has_value = equals != std::string::npos;
    std::string text = has_value ? argument.substr(equals + 1) : "";
    if (option->semantic()->max_tokens() == 0) {
      if (has_value) problems_.add(name, "takes no value");
    } else if (!has_value) {
      const bool has_none = next_ == arguments_.size() || is_flag(arguments_[next_]);
      if (has_none && option->long_name() == "status") {
        return keep(*option, name, kDefaultResultsDir);  // the last run there
      }
      if (has_none) {
        problems_.add(name, concat("needs a value: ", option->format_parameter()));
        return;
      }
      text = arguments_[next_++];
    }
    keep(*option, name, std::move(text));
  }

  // mpirun takes its options only before the program's name.
  bool take_option_of_mpirun(const std::string& name) {
    constexpr std::string_view kTakers[] = {"-n",           "-np",      "--np",     "-c",
                                            "-H",           "-host",    "--host",   "-hostfile",
                                            "-machinefile", "--map-by", "--bind-to"};
    if (std::find(std::begin(kTakers), std::end(kTakers), name) == std::end(kTakers)) return false;
    std::vector<std::string> rest(arguments_.begin(), arguments_.end());
    const auto place = rest.begin() + static_cast<std::ptrdiff_t>(next_) - 1;
    const bool has_value = next_ < arguments_.size() && !is_flag(arguments_[next_]);
    std::string moved = name;
    if (has_value) moved += " " + arguments_[next_++];
    rest.erase(place, place + (has_value ? 2 : 1));
    problems_.add(name, concat("belongs before the program: mpirun ", moved, " dstune-mpi ",
                               join(rest, " ")));
    return true;
  }

  void keep(const po::option_description& option, const std::string& name, std::string text) {
    if (option.semantic()->is_composing()) {
      given_.lists[option.long_name()].push_back(std::move(text));
    } else if (!given_.options.emplace(option.long_name(), std::move(text)).second) {
      problems_.add(name, "is given more than once");
    }
  }

  const po::option_description* find(const std::string& name) const {
    const auto match = name.rfind("--", 0) == 0 ? name.substr(2) : name;
    for (const auto& option : options_.options()) {
      const bool is_long = option->long_name() == match && name != match;
      if (is_long || option->canonical_display_name(kShortForm) == name) return option.get();
    }
    return nullptr;
  }

  bool is_flag(const std::string& text) const {
    return text.rfind("--", 0) == 0 || find(text) != nullptr;
  }

  std::vector<std::string> flags() const {
    std::vector<std::string> names;
    for (const auto& option : options_.options()) names.push_back("--" + option->long_name());
    return names;
  }

  static constexpr int kShortForm = po::command_line_style::allow_dash_for_short;

  const po::options_description options_ = command_line_options();
  const std::vector<std::string>& arguments_;
  Problems& problems_;
  std::size_t next_ = 0;
  Given given_;
};

}  // namespace

Given scan_arguments(const std::vector<std::string>& arguments, Problems& problems) {
  return Scanner(arguments, problems).scan();
}

}  // namespace dstune
