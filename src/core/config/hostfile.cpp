#include "core/config/hostfile.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

#include "core/base/text.hpp"
#include "core/config/problems.hpp"
#include "core/config/read_json.hpp"

namespace dstune {

namespace {

constexpr int kMostSlots = 1'000'000;

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

class Line {
 public:
  Line(std::size_t number, Problems& problems)
      : where_(concat("line ", number)), problems_(problems) {}

  std::optional<HostSlots> read(std::string_view text) {
    const auto words = words_of(text);
    auto entry = read_host(words.front());
    std::optional<int> max_slots;
    bool right = entry.has_value();
    HostSlots host = entry.value_or(HostSlots{});
    for (std::size_t i = 1; i < words.size(); ++i) {
      right = read_setting(words[i], host.slots, max_slots) && right;
    }
    if (max_slots && *max_slots < host.slots) {
      right = fail(concat("has slots=", host.slots, " above max_slots=", *max_slots));
    }
    if (!right) return std::nullopt;
    return host;
  }

 private:
  bool fail(std::string what) {
    problems_.add(where_, std::move(what));
    return false;
  }

  std::optional<HostSlots> read_host(std::string_view word) {
    if (word.front() == '^' || word.front() == '+') {
      fail(concat("has ", in_quotes(word), "; excluded and relative hosts are not supported here"));
      return std::nullopt;
    }
    const auto name = word.substr(word.rfind('@') + 1);
    if (name.empty() || !std::all_of(name.begin(), name.end(), is_host_letter)) {
      fail(
          concat("has ", in_quotes(word), " where a host is expected; accepted: \"host slots=8\""));
      return std::nullopt;
    }
    if (std::count(name.begin(), name.end(), ':') == 1) {
      fail(concat("has ", in_quotes(word), "; write \"", name.substr(0, name.find(':')),
                  " slots=", name.substr(name.find(':') + 1), "\""));
      return std::nullopt;
    }
    return HostSlots{std::string(name), 1};
  }

  bool read_setting(std::string_view word, int& slots, std::optional<int>& max_slots) {
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
    if (is_slots) {
      slots = *count;
    } else {
      max_slots = count;
    }
    return true;
  }

  std::string where_;
  Problems& problems_;
};

void add_host(std::vector<HostSlots>& hosts, const HostSlots& entry) {
  const auto found = std::find_if(hosts.begin(), hosts.end(),
                                  [&](const HostSlots& host) { return host.host == entry.host; });
  if (found == hosts.end()) {
    hosts.push_back(entry);
  } else {
    found->slots = std::min(found->slots + entry.slots, kMostSlots);
  }
}

Hostfile parse_lines(std::string_view text, Problems& problems) {
  Hostfile hostfile{problems.source(), {}};
  const auto lines = split(text, '\n');
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string_view whole(lines[i]);
    const auto line = trim(whole.substr(0, whole.find('#')));
    if (line.empty()) continue;
    if (const auto entry = Line(i + 1, problems).read(line)) add_host(hostfile.hosts, *entry);
  }
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
