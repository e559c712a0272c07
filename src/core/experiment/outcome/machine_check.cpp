#include "core/experiment/outcome/machine_check.hpp"

#include "core/base/json.hpp"

namespace dstune {
namespace {

double number_at(const json::array& array, std::size_t place) {
  return array.at(place).to_number<double>();
}

}  // namespace

json::object to_json(const MachineCheck& check) {
  json::array ranks;
  for (const RankCheck& rank : check.ranks) {
    ranks.push_back(json::array{rank.flops_per_s, rank.copy_bytes_per_s, rank.jitter});
  }
  json::array pairs;
  for (const PairCheck& pair : check.pairs) {
    pairs.push_back(json::array{pair.first, pair.second, pair.rate.latency, pair.rate.bytes_per_s});
  }
  return {{"ranks", std::move(ranks)},
          {"pairs", std::move(pairs)},
          {"ring", json::array{check.ring.latency, check.ring.bytes_per_s}}};
}

MachineCheck machine_check_from_json(const json::object& object) {
  MachineCheck check;
  for (const json::value& value : object.at("ranks").as_array()) {
    const json::array& rank = value.as_array();
    check.ranks.push_back({number_at(rank, 0), number_at(rank, 1), number_at(rank, 2)});
  }
  for (const json::value& value : object.at("pairs").as_array()) {
    const json::array& pair = value.as_array();
    check.pairs.push_back({pair.at(0).to_number<int>(),
                           pair.at(1).to_number<int>(),
                           {number_at(pair, 2), number_at(pair, 3)}});
  }
  const json::array& ring = object.at("ring").as_array();
  check.ring = {number_at(ring, 0), number_at(ring, 1)};
  return check;
}

}  // namespace dstune
