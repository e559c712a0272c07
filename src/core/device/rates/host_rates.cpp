#include "core/device/rates/host_rates.hpp"

#include <algorithm>

#include "core/base/json.hpp"
#include "core/base/text.hpp"

namespace dstune {
namespace {

// Another number means that the rates were measured in another way.
constexpr int kVersion = 1;

std::string name_of(const HostCopyKind& kind) {
  return concat(name_of(kind.tier),
                kind.direction == Transfer::device_to_host ? "_to_host" : "_to_device");
}

json::object to_json(const CopyRate& rate) {
  return {{"latency_s", rate.latency}, {"bytes_per_s", rate.bytes_per_s}};
}

CopyRate copy_rate_from_json(const json::object& object) {
  return {.latency = object.at("latency_s").to_number<double>(),
          .bytes_per_s = object.at("bytes_per_s").to_number<double>()};
}

std::string gigabytes(double bytes_per_s) { return fixed(bytes_per_s / 1e9, 1); }

std::string describe_copies(const HostRates& rates, Tier tier) {
  const CopyRates& to_host = rates.at(tier, Transfer::device_to_host);
  const CopyRates& to_device = rates.at(tier, Transfer::host_to_device);
  return concat(name_of(tier), ' ', gigabytes(to_host.together.bytes_per_s),
                " GB/s to the host and ", gigabytes(to_device.together.bytes_per_s),
                " to the device (alone ", gigabytes(to_host.alone.bytes_per_s), " and ",
                gigabytes(to_device.alone.bytes_per_s), ')');
}

}  // namespace

Seconds HostRates::time_of(const HostTransfer& copy) const {
  const CopyRate& rate = at(copy.tier, copy.direction).together;
  return rate.latency + static_cast<double>(copy.from.size()) / rate.bytes_per_s;
}

Seconds HostRates::time_of(const DriveTransfer& transfer) const {
  const DriveRate& rate = transfer.direction == Transfer::nvme_read ? drive_read : drive_write;
  return rate.latency + static_cast<double>(transfer.tensor.size()) / rate.bytes_per_s;
}

Seconds HostRates::time_of_pass(const Work& work) const {
  return static_cast<double>(work.read_bytes() + work.written_bytes()) / pass_bytes_per_s(threads);
}

double HostRates::pass_bytes_per_s(int with_threads) const {
  double most = 0;
  for (const HostPassRate& pass : passes) {
    if (pass.threads == with_threads) return pass.bytes_per_s;
    most = std::max(most, pass.bytes_per_s);
  }
  return std::min(with_threads * passes.front().bytes_per_s, most);
}

std::string describe(const HostRates& rates) {
  std::string text =
      concat(describe_copies(rates, Tier::pinned), ", ", describe_copies(rates, Tier::pageable));
  if (rates.both_ways_bytes_per_s > 0) {
    text += concat(", both ways at once ", gigabytes(rates.both_ways_bytes_per_s));
  }
  std::vector<std::string> passes;
  for (const HostPassRate& pass : rates.passes) {
    passes.push_back(concat(gigabytes(pass.bytes_per_s), passes.empty() ? " GB/s with " : " with ",
                            pass.threads, pass.threads == 1 ? " thread" : ""));
  }
  return concat(text, "; Adam ", join(passes, ", "));
}

json::object to_json(const HostRates& rates) {
  json::object object = {{"version", kVersion}, {"threads", rates.threads}};
  for (std::size_t kind = 0; kind < kHostCopies.size(); ++kind) {
    object[name_of(kHostCopies[kind])] = {{"alone", to_json(rates.copies[kind].alone)},
                                          {"together", to_json(rates.copies[kind].together)}};
  }
  object["both_ways_bytes_per_s"] = rates.both_ways_bytes_per_s;
  json::array passes;
  for (const HostPassRate& pass : rates.passes) {
    passes.push_back(json::object{{"threads", pass.threads}, {"bytes_per_s", pass.bytes_per_s}});
  }
  object["passes"] = std::move(passes);
  return object;
}

std::optional<HostRates> host_rates_from_json(const json::object& object) {
  if (object.at("version").to_number<int>() != kVersion) return std::nullopt;
  HostRates rates;
  rates.threads = object.at("threads").to_number<int>();
  for (std::size_t kind = 0; kind < kHostCopies.size(); ++kind) {
    const json::object& copies = object.at(name_of(kHostCopies[kind])).as_object();
    rates.copies[kind] = {copy_rate_from_json(copies.at("alone").as_object()),
                          copy_rate_from_json(copies.at("together").as_object())};
  }
  rates.both_ways_bytes_per_s = object.at("both_ways_bytes_per_s").to_number<double>();
  rates.passes.clear();
  for (const json::value& value : object.at("passes").as_array()) {
    const json::object& pass = value.as_object();
    rates.passes.push_back(
        {pass.at("threads").to_number<int>(), pass.at("bytes_per_s").to_number<double>()});
  }
  if (rates.passes.empty()) return std::nullopt;
  return rates;
}

}  // namespace dstune
