#include "core/search/schedule/machine_faults.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/base/statistics.hpp"
#include "core/base/text.hpp"

namespace dstune {
namespace {

constexpr double kSlowProduct = 1.3;
constexpr double kSlowCopy = 1.5;
constexpr double kSlowByJitter = 1.3;
/// The jitter of the others from which the machine is busy. There it is chance who is interrupted
/// most, for seconds, and only a far larger factor of the other figures counts.
constexpr double kBusy = 0.25;
constexpr double kSlowOnBusy = 8;
constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kSlowVolume = 2;
constexpr double kSlowLatency = 3;
constexpr double kSlowConnection = 3;
/// A latency that is longer by less is no fault, whatever the factor.
constexpr Seconds kShortDelay = 20e-6;
constexpr std::size_t kLeastConnections = 4;

struct CheckedRank {
  const Worker* worker;
  const std::string* name;
  RankCheck check;
};

struct Connection {
  const Worker* first;
  const Worker* second;
  CollectiveRate rate;

  bool is_on_one_host() const { return first->host == second->host; }
  bool has(const Worker* worker) const { return first == worker || second == worker; }
};

std::vector<CheckedRank> ranks_of(const std::vector<CheckedGroup>& groups) {
  std::vector<CheckedRank> ranks;
  for (const CheckedGroup& group : groups) {
    for (std::size_t i = 0; i < group.check.ranks.size(); ++i) {
      ranks.push_back({&group.workers.at(i), &group.names.at(i), group.check.ranks[i]});
    }
  }
  return ranks;
}

std::vector<Connection> connections_of(const std::vector<CheckedGroup>& groups) {
  std::vector<Connection> all;
  for (const CheckedGroup& group : groups) {
    for (const PairCheck& pair : group.check.pairs) {
      all.push_back({&group.workers.at(static_cast<std::size_t>(pair.first)),
                     &group.workers.at(static_cast<std::size_t>(pair.second)), pair.rate});
    }
  }
  return all;
}

double median_of(const std::vector<double>& values) { return summarize(values).median; }

std::string giga(double value, const char* unit) {
  return concat(fixed(value / 1e9, 1), " G", unit);
}

std::string micro(Seconds value) { return concat(fixed(value * 1e6, 1), " us"); }

/// A figure of a rank as a time for the same work.
struct RankFigure {
  const char* key;
  const char* work;
  double slow;
  double slow_on_busy;
  std::function<double(const RankCheck&)> time;
  std::function<std::string(const RankCheck&)> text;
};

const std::vector<RankFigure>& rank_figures() {
  static const std::vector<RankFigure> figures = {
      {"product", "for a matrix product", kSlowProduct, kSlowOnBusy,
       [](const RankCheck& check) { return 1 / check.flops_per_s; },
       [](const RankCheck& check) { return giga(check.flops_per_s, "FLOP/s"); }},
      {"copy", "for a copy", kSlowCopy, kSlowOnBusy,
       [](const RankCheck& check) { return 1 / check.copy_bytes_per_s; },
       [](const RankCheck& check) { return giga(check.copy_bytes_per_s, "B/s"); }},
      {"jitter", "because of interruptions", kSlowByJitter, kNever,
       [](const RankCheck& check) { return 1 + check.jitter; },
       [](const RankCheck& check) {
         return concat("a jitter of ", fixed(check.jitter * 100, 0), " %");
       }}};
  return figures;
}

void find_slow_ranks(const std::vector<CheckedRank>& ranks, std::vector<MachineFault>& faults) {
  for (const CheckedRank& rank : ranks) {
    std::vector<RankCheck> others;
    std::vector<double> jitters;
    for (const CheckedRank& other : ranks) {
      if (other.worker == rank.worker || other.worker->hardware != rank.worker->hardware) continue;
      others.push_back(other.check);
      jitters.push_back(other.check.jitter);
    }
    if (others.empty()) continue;
    const bool is_busy = median_of(jitters) > kBusy;
    for (const RankFigure& figure : rank_figures()) {
      std::ranges::sort(others, {}, figure.time);
      const RankCheck& usual = others[others.size() / 2];
      const double factor = figure.time(rank.check) / figure.time(usual);
      if (!(factor > (is_busy ? figure.slow_on_busy : figure.slow))) continue;
      faults.push_back(
          {concat(figure.key, " ", rank.worker->rank),
           {*rank.worker},
           concat("takes ", fixed(factor, 1), " times as long as the others ", figure.work, " (",
                  figure.text(rank.check), " against ", figure.text(usual), ")")});
    }
  }
}

/// A figure of a connection as a time.
struct Figure {
  const char* key;
  const char* what;
  double slow;
  Seconds least_delay;
  double (*time)(const CollectiveRate&);
  std::string (*text)(const CollectiveRate&);
};

constexpr Figure kFigures[] = {
    {"latency", "short messages", kSlowLatency, kShortDelay,
     [](const CollectiveRate& rate) { return rate.latency; },
     [](const CollectiveRate& rate) { return micro(rate.latency); }},
    {"volume", "long messages", kSlowVolume, 0,
     [](const CollectiveRate& rate) { return 1 / rate.bytes_per_s; },
     [](const CollectiveRate& rate) { return giga(rate.bytes_per_s, "B/s"); }}};

bool is_slow(const Figure& figure, double factor, const CollectiveRate& own,
             const CollectiveRate& usual) {
  const double time = figure.time(own);
  return time > factor * figure.time(usual) && time - figure.time(usual) > figure.least_delay;
}

std::string slower(const Figure& figure, const CollectiveRate& own, const CollectiveRate& usual) {
  return concat(fixed(figure.time(own) / figure.time(usual), 1), " times as long for ", figure.what,
                " as the others (", figure.text(own), " against ", figure.text(usual), ")");
}

/// The ranks whose messages are slow with every one of several partners: of the two ends of a
/// connection that is the only one of both nobody knows whose fault it is.
std::set<const Worker*> find_slow_ends(const Figure& figure, const std::vector<Connection>& kind,
                                       std::vector<MachineFault>& faults) {
  std::map<const Worker*, CollectiveRate> best;
  std::map<const Worker*, int> partners;
  const auto note = [&](const Worker* end, const CollectiveRate& rate) {
    ++partners[end];
    const auto known = best.try_emplace(end, rate).first;
    if (figure.time(rate) < figure.time(known->second)) known->second = rate;
  };
  for (const Connection& connection : kind) {
    note(connection.first, connection.rate);
    note(connection.second, connection.rate);
  }
  std::set<const Worker*> slow;
  for (const auto& [worker, rate] : best) {
    std::vector<CollectiveRate> others;
    for (const auto& [other, theirs] : best) {
      if (other != worker) others.push_back(theirs);
    }
    if (others.size() < 2 || partners.at(worker) < 2) continue;
    std::ranges::sort(others, {}, figure.time);
    const CollectiveRate& usual = others[others.size() / 2];
    if (!is_slow(figure, figure.slow, rate, usual)) continue;
    slow.insert(worker);
    faults.push_back({concat(figure.key, " ", worker->rank),
                      {*worker},
                      concat("takes ", slower(figure, rate, usual), " with its best partner")});
  }
  return slow;
}

void find_slow_connections(const Figure& figure, const std::vector<Connection>& kind,
                           const std::set<const Worker*>& slow_ends,
                           std::vector<MachineFault>& faults) {
  constexpr double kSlower = 0.75;  // of the others are not slower than what counts as usual
  if (kind.size() < kLeastConnections) return;
  std::vector<const Connection*> ordered;
  ordered.reserve(kind.size());
  for (const Connection& connection : kind) ordered.push_back(&connection);
  std::ranges::sort(ordered, {}, [&](const Connection* each) { return figure.time(each->rate); });
  for (const Connection& connection : kind) {
    if (slow_ends.contains(connection.first) || slow_ends.contains(connection.second)) continue;
    std::vector<const Connection*> others = ordered;
    std::erase(others, &connection);
    const auto place = static_cast<std::size_t>(kSlower * static_cast<double>(others.size() - 1));
    const CollectiveRate& usual = others[place]->rate;
    if (!is_slow(figure, kSlowConnection, connection.rate, usual)) continue;
    faults.push_back(
        {concat(figure.key, " ", connection.first->rank, " ", connection.second->rank),
         {*connection.first, *connection.second},
         concat("take ", slower(figure, connection.rate, usual), " between each other")});
  }
}

template <class Value>
std::string span(std::vector<double> values, Value text) {
  const Summary all = summarize(std::move(values));
  const std::string low = text(all.min);
  const std::string high = text(all.max);
  return low == high ? low : concat(low, " to ", high);
}

}  // namespace

std::vector<MachineFault> find_machine_faults(const std::vector<CheckedGroup>& groups) {
  std::vector<MachineFault> faults;
  find_slow_ranks(ranks_of(groups), faults);
  const auto all = connections_of(groups);
  for (const bool on_one_host : {true, false}) {
    std::vector<Connection> kind;
    for (const Connection& connection : all) {
      if (connection.is_on_one_host() == on_one_host) kind.push_back(connection);
    }
    for (const Figure& figure : kFigures) {
      const auto slow_ends = find_slow_ends(figure, kind, faults);
      find_slow_connections(figure, kind, slow_ends, faults);
    }
  }
  return faults;
}

std::string describe_check(const std::vector<CheckedGroup>& groups) {
  std::vector<double> products;
  std::vector<double> copies;
  std::vector<double> jitters;
  for (const CheckedRank& rank : ranks_of(groups)) {
    products.push_back(rank.check.flops_per_s);
    copies.push_back(rank.check.copy_bytes_per_s);
    jitters.push_back(rank.check.jitter);
  }
  if (products.empty()) return "";
  const auto flops = [](double value) { return giga(value, "FLOP/s"); };
  const auto bytes = [](double value) { return giga(value, "B/s"); };
  std::string text = concat(
      products.size(), products.size() == 1 ? " rank: " : " ranks: ", span(products, flops),
      ", copies of ", span(copies, bytes), ", jitter at most ",
      fixed(summarize(jitters).max * 100, 0), " %",
      median_of(jitters) > kBusy ? ": the machine is busy, so that only gross faults show" : "");
  std::vector<double> latencies;
  std::vector<double> volumes;
  for (const Connection& connection : connections_of(groups)) {
    latencies.push_back(connection.rate.latency);
    volumes.push_back(connection.rate.bytes_per_s);
  }
  if (latencies.empty()) return text;
  return concat(text, "; ", latencies.size(),
                latencies.size() == 1 ? " pair: " : " pairs: ", span(latencies, micro), ", ",
                span(volumes, bytes), " each way");
}

std::string check_table(const std::vector<CheckedGroup>& groups) {
  std::string text =
      "| rank | GFLOP/s | copy (GB/s) | jitter (%) |\n| ---- | ------: | ----------: | ---------: "
      "|\n";
  for (const CheckedRank& rank : ranks_of(groups)) {
    text += concat("| ", *rank.name, " | ", fixed(rank.check.flops_per_s / 1e9, 1), " | ",
                   fixed(rank.check.copy_bytes_per_s / 1e9, 1), " | ",
                   fixed(rank.check.jitter * 100, 1), " |\n");
  }
  const auto row = [&](const std::string& name, const CollectiveRate& rate) {
    text += concat("| ", name, " | ", fixed(rate.latency * 1e6, 1), " | ",
                   fixed(rate.bytes_per_s / 1e9, 2), " |\n");
  };
  if (connections_of(groups).empty()) return text;
  text += "\n| messages | latency (us) | GB/s |\n| -------- | -----------: | ---: |\n";
  for (const Connection& connection : connections_of(groups)) {
    row(concat("ranks ", connection.first->rank, " and ", connection.second->rank),
        connection.rate);
  }
  for (const CheckedGroup& group : groups) {
    row(concat("sum of ", group.workers.size(), " ranks"), group.check.ring);
  }
  return text;
}

}  // namespace dstune
