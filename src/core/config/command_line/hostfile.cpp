#include "core/config/command_line/hostfile.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <unordered_map>
#include <utility>

#include "core/base/text.hpp"
#include "core/config/command_line/host_list.hpp"
#include "core/input/problems.hpp"
#include "core/input/read_text.hpp"

namespace dstune {

namespace {

constexpr int kMostSlots = 1'000'000;
constexpr std::size_t kMostHosts = 100'000;
constexpr std::size_t kMostEntries = 1'000'000;
constexpr std::size_t kMostFaults = 49;  // nobody reads more, and each may cost as much as a host
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// "host", "key=value" words; blanks around '=' do not separate.
std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  bool open = false;  // the next letter continues the last word
  for (const char letter : line) {
    if (std::isspace(static_cast<unsigned char>(letter)) != 0) {
      open = open && words.back().back() == '=';
    } else if (open || (letter == '=' && !words.empty())) {
      words.back() += letter;
      open = true;
    } else {
      words.emplace_back(1, letter);
      open = true;
    }
  }
  return words;
}

std::optional<int> read_count(std::string_view text) {
  int count = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (fault != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (count < 1 || count > kMostSlots) return std::nullopt;
  return count;
}

bool is_host_letter(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 ||
         std::string_view("-._:[]%").find(letter) != std::string_view::npos;
}

bool is_beyond_use(const Problems& problems) { return problems.count() >= kMostFaults; }

class Line {
 public:
  Line(std::size_t number, Problems& problems)
      : where_(concat("line ", number)), problems_(problems) {}

  /// The hosts of one line; none if it is blank, or after a fault.
  std::vector<HostSlots> read(std::string_view text) {
    const auto words = words_of(text);
    std::vector<HostSlots> hosts;
    if (words.empty()) return hosts;
    bool right = read_hosts(words.front(), hosts);
    for (std::size_t i = 1; i < words.size() && !is_beyond_use(problems_); ++i) {
      right = read_setting(words[i]) && right;
    }
    if (!right) return {};
    for (auto& host : hosts) host.slots = slots_.value_or(host.slots);
    const int slots = hosts.front().slots;
    if (max_slots_ && *max_slots_ < slots) {
      fail(concat("has slots=", slots, " above max_slots=", *max_slots_));
      return {};
    }
    return hosts;
  }

 private:
  bool fail(std::string what) {
    problems_.add(where_, std::move(what));
    return false;
  }

  // One host, or the list that Slurm makes of several: "node[01-04,07],login".
  bool read_hosts(std::string_view word, std::vector<HostSlots>& hosts) {
    const auto names = expand_host_list(word, kMostHosts);
    if (!names) {
      return fail(concat("has ", in_quotes(word), ", which is not a list of at most ", kMostHosts,
                         " hosts; accepted: \"node[01-04,07] slots=8\""));
    }
    bool right = true;
    for (const auto& name : *names) {
      const auto host = read_host(name);
      right = right && host;
      if (host) hosts.push_back(*host);
      if (!right) break;
    }
    return right;
  }

  std::optional<HostSlots> read_host(std::string_view word) {
    if (word.starts_with('^') || word.starts_with('+')) {
      fail(concat("has ", in_quotes(word), "; excluded and relative hosts are not supported here"));
      return std::nullopt;
    }
    auto name = word.substr(word.rfind('@') + 1);
    std::optional<int> slots = 1;
    if (std::count(name.begin(), name.end(), ':') == 1) {  // more of them are an IPv6 address
      const auto colon = name.find(':');
      slots = read_count(name.substr(colon + 1));
      name = name.substr(0, colon);
    }
    if (!slots || name.empty() || !std::all_of(name.begin(), name.end(), is_host_letter)) {
      fail(
          concat("has ", in_quotes(word), " where a host is expected; accepted: \"host slots=8\""));
      return std::nullopt;
    }
    return HostSlots{std::string(name), *slots};
  }

  bool read_setting(std::string_view word) {
    const auto equals = word.find('=');
    std::string key(word.substr(0, equals));
    std::replace(key.begin(), key.end(), '-', '_');
    const bool is_slots = key == "slots";
    const bool is_max = key == "max_slots" || key == "slots_max";
    if (equals == std::string_view::npos || (!is_slots && !is_max)) {
      const std::string near = did_you_mean(key, {"slots", "max_slots"});
      return fail(concat("has ", in_quotes(word),
                         near.empty() ? "" : concat("; did you mean ", in_quotes(near + "=N"), "?"),
                         near.empty() ? "; accepted: " : " accepted: ", "slots=N, max_slots=N"));
    }
    const auto count = read_count(word.substr(equals + 1));
    if (!count) {
      return fail(
          concat("has ", in_quotes(word), "; accepted: ", key, "=N with N from 1 to ", kMostSlots));
    }
    auto& setting = is_slots ? slots_ : max_slots_;
    if (setting) return fail(concat("has ", key, "= twice; keep one of them"));
    setting = count;
    return true;
  }

  std::string where_;
  Problems& problems_;
  std::optional<int> slots_;
  std::optional<int> max_slots_;
};

/// The hosts of a file, which may have a million lines.
class HostList {
 public:
  void add(const HostSlots& entry) {
    ++added_;
    const auto [place, is_new] = places_.emplace(entry.host, hosts_.size());
    if (is_new) {
      hosts_.push_back(entry);
    } else {
      int& slots = hosts_[place->second].slots;
      slots = std::min(slots + entry.slots, kMostSlots);
    }
  }
  std::size_t added() const { return added_; }  ///< repeated ones too
  std::vector<HostSlots> take() { return std::move(hosts_); }

 private:
  std::vector<HostSlots> hosts_;
  std::unordered_map<std::string, std::size_t> places_;  // in hosts_
  std::size_t added_ = 0;
};

Hostfile parse_lines(std::string_view text, Problems& problems) {
  Hostfile hostfile{problems.source(), {}};
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) {
    text.remove_prefix(kByteOrderMark.size());
  }
  HostList hosts;
  const auto lines = split(text, '\n');
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string_view whole(lines[i]);
    const auto line = whole.substr(0, whole.find('#'));
    for (const auto& host : Line(i + 1, problems).read(line)) hosts.add(host);
    if (is_beyond_use(problems)) {
      problems.add("file", "has more errors than these; the rest is not read");
      break;
    }
    if (hosts.added() <= kMostEntries) continue;
    problems.add("file", concat("names more than ", kMostEntries, " hosts"));
    break;
  }
  hostfile.hosts = hosts.take();
  if (hostfile.hosts.empty() && problems.empty()) {
    problems.add("file", "names no host; accepted: lines such as \"host slots=8\"");
  }
  problems.throw_if_any();
  return hostfile;
}

}  // namespace

int Hostfile::total_slots() const {
  std::int64_t sum = 0;
  for (const auto& host : hosts) sum += host.slots;
  return static_cast<int>(std::min<std::int64_t>(sum, kMostSlots));
}

int Hostfile::workers() const {
  const int slots = total_slots();
  if (slots >= 2) return slots - 1;
  throw ConfigError(source, {{"file", concat("has ", slots, slots == 1 ? " slot" : " slots",
                                             "; at least 2 are needed: rank 0 tunes, every other "
                                             "rank is a worker")}});
}

int Hostfile::workers_on_largest_host() const {
  int most = hosts.empty() ? 0 : hosts.front().slots - 1;
  for (std::size_t i = 1; i < hosts.size(); ++i) most = std::max(most, hosts[i].slots);
  return most;
}

Hostfile parse_hostfile(std::string_view text, const std::string& source) {
  Problems problems(source);
  return parse_lines(text, problems);
}

Hostfile read_hostfile(const std::filesystem::path& path) {
  constexpr std::size_t kLongest = std::size_t{16} << 20U;
  Problems problems(path.string());
  const auto text = read_text_file(path, kLongest, problems);
  problems.throw_if_any();
  return parse_lines(*text, problems);
}

}  // namespace dstune
