#include <array>
#include <stdexcept>
#include <string>

#include <boost/json/value_from.hpp>
#include <boost/json/value_to.hpp>

#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/device/ledger/ledger.hpp"
#include "core/device/read_enum.hpp"

namespace dstune {

namespace {

constexpr std::array<std::string_view, kPurposes> kPurposeNames = {
    "gradients", "parameters", "persistent", "scales", "norm", "overflow", "other"};
constexpr std::array<std::string_view, kPasses> kPassNames = {
    "accumulate",     "bucket_copy",    "flatten",     "average",         "message_cast",
    "partition_copy", "overflow_check", "norm",        "master_gradient", "unscale",
    "update",         "master_cast",    "gather_pack", "gather_unpack",   "zero_gradients",
    "quantize",       "dequantize"};
constexpr std::array<std::string_view, kHostSyncs> kHostSyncNames = {
    "timer",        "overflow",         "norm",         "reduction",     "parameters",
    "offload_copy", "offload_overflow", "offload_norm", "blocking_copy", "drive"};
constexpr std::array<std::string_view, kTransfers> kTransferNames = {
    "host_to_device", "device_to_host", "nvme_read", "nvme_write"};
constexpr std::array<std::string_view, kTransferPurposes> kTransferPurposeNames = {
    "scalar", "gradient", "gradient_sum", "update", "gradient_shard", "parameter", "state"};
constexpr std::array<std::string_view, kStreams> kStreamNames = {"compute", "reduction", "gather",
                                                                 "communication"};
constexpr std::string_view kInLedger = "ledger";

/// Earlier journals have fewer and dearer hooks, as their profile does.
HostEvent read_host_event(const json::object& line) {
  if (line.at("event").as_string() == kEarlierHook) return HostEvent::sub_module_hook;
  return read_enum<HostEvent>(line, "event", kHostEvents, kInLedger);
}

template <class Number>
Number read(const json::object& object, std::string_view key) {
  return object.at(key).to_number<Number>();
}

json::object to_object(const CollectiveLine& line) {
  json::object object{{"purpose", name_of(line.purpose)},
                      {"kind", name_of(line.kind)},
                      {"dtype", name_of(line.dtype)},
                      {"stream", name_of(line.stream)},
                      {"ranks", line.ranks},
                      {"calls", line.calls},
                      {"elements", line.elements},
                      {"bytes", line.bytes},
                      {"wire_bytes_per_rank", line.wire_bytes},
                      {"exposed_s", line.exposed},
                      {"overlapped_s", line.overlapped},
                      {"added_s", line.added}};
  if (line.pipelined > 0) object["pipelined_calls"] = line.pipelined;
  return object;
}

CollectiveLine collective_from(const json::object& object) {
  const CollectiveLine line{
      read_enum<Purpose>(object, "purpose", kPurposes, kInLedger),
      read_enum<CollectiveKind>(object, "kind", kCollectiveKinds, kInLedger),
      read_enum<DType>(object, "dtype", kSentDTypes, kInLedger),
      read_enum<Stream>(object, "stream", kStreamNames.size(), kInLedger),
      read<int>(object, "ranks"),
      read<std::uint64_t>(object, "calls"),
      read<std::uint64_t>(object, "elements"),
      read<Bytes>(object, "bytes"),
      read<double>(object, "wire_bytes_per_rank"),
      read<double>(object, "exposed_s"),
      read<double>(object, "overlapped_s"),
      object.contains("added_s") ? read<double>(object, "added_s") : 0,
      object.contains("pipelined_calls") ? read<std::uint64_t>(object, "pipelined_calls") : 0};
  if (line.pipelined > line.calls) {
    throw std::invalid_argument("ledger: more pipelined_calls than calls");
  }
  return line;
}

json::object to_object(const PassLine& line) {
  return {{"pass", name_of(line.pass)},
          {"calls", line.calls},
          {"read_bytes", line.read},
          {"written_bytes", line.written}};
}

json::object to_object(const HostPassLine& line) {
  return {{"pass", name_of(line.pass)},
          {"calls", line.calls},
          {"read_bytes", line.read},
          {"written_bytes", line.written},
          {"time_s", line.time}};
}

json::object to_object(const SyncLine& line) {
  return {{"reason", name_of(line.reason)}, {"calls", line.calls}, {"time_s", line.time}};
}

json::object to_object(const TransferLine& line) {
  return {{"transfer", name_of(line.transfer)},
          {"purpose", name_of(line.purpose)},
          {"tier", name_of(line.tier)},
          {"blocking", line.is_blocking},
          {"stream", name_of(line.stream)},
          {"calls", line.calls},
          {"bytes", line.bytes}};
}

TransferLine transfer_from(const json::object& object) {
  TransferLine line;
  line.transfer = read_enum<Transfer>(object, "transfer", kTransfers, kInLedger);
  line.calls = read<std::uint64_t>(object, "calls");
  line.bytes = read<Bytes>(object, "bytes");
  if (!object.contains("purpose")) return line;  // earlier journals know of numbers alone
  line.purpose = read_enum<TransferPurpose>(object, "purpose", kTransferPurposes, kInLedger);
  line.tier = read_enum<Tier>(object, "tier", kTiers, kInLedger);
  line.is_blocking = object.at("blocking").as_bool();
  line.stream = read_enum<Stream>(object, "stream", kStreamNames.size(), kInLedger);
  return line;
}

json::object to_object(const HostLine& line) {
  return {{"event", name_of(line.event)},
          {"calls", line.calls},
          {"time_s", line.time},
          {"idle_s", line.idle}};
}

template <class Line>
json::array lines_to_json(const std::vector<Line>& lines) {
  json::array array;
  for (const Line& line : lines) array.push_back(to_object(line));
  return array;
}

/// Calls read_line(object) for every entry of the array `object[key]`.
template <class ReadLine>
auto read_lines(const json::object& object, std::string_view key, ReadLine read_line) {
  std::vector<decltype(read_line(object))> lines;
  for (const json::value& line : object.at(key).as_array()) {
    lines.push_back(read_line(line.as_object()));
  }
  return lines;
}

}  // namespace

std::string_view name_of(Purpose purpose) {
  return kPurposeNames[static_cast<std::size_t>(purpose)];
}
std::string_view name_of(MemoryPass pass) { return kPassNames[static_cast<std::size_t>(pass)]; }
std::string_view name_of(HostSync reason) {
  return kHostSyncNames[static_cast<std::size_t>(reason)];
}
std::string_view name_of(Transfer transfer) {
  return kTransferNames[static_cast<std::size_t>(transfer)];
}
std::string_view name_of(TransferPurpose purpose) {
  return kTransferPurposeNames[static_cast<std::size_t>(purpose)];
}
std::string_view name_of(Stream stream) { return kStreamNames[static_cast<std::size_t>(stream)]; }

json::object Ledger::to_json() const {
  json::object object{{"collectives", lines_to_json(collectives_)},
                      {"passes", lines_to_json(passes_)},
                      {"host_syncs", lines_to_json(syncs_)},
                      {"transfers", lines_to_json(transfers_)},
                      {"host", lines_to_json(host_)},
                      {"peak_live_elements", peak_live_elements_}};
  if (!host_passes_.empty()) object["host_passes"] = lines_to_json(host_passes_);
  if (library_wait_ > 0) object["product_wait_s"] = library_wait_;
  if (!stand_ins_.empty()) object["stand_ins"] = json::value_from(stand_ins_);
  return object;
}

Ledger Ledger::from_json(const json::object& object) {
  Ledger ledger;
  ledger.collectives_ = read_lines(object, "collectives", collective_from);
  ledger.passes_ = read_lines(object, "passes", [](const json::object& line) {
    return PassLine{read_enum<MemoryPass>(line, "pass", kPasses, kInLedger),
                    read<std::uint64_t>(line, "calls"), read<Bytes>(line, "read_bytes"),
                    read<Bytes>(line, "written_bytes")};
  });
  ledger.syncs_ = read_lines(object, "host_syncs", [](const json::object& line) {
    return SyncLine{read_enum<HostSync>(line, "reason", kHostSyncs, kInLedger),
                    read<std::uint64_t>(line, "calls"), read<double>(line, "time_s")};
  });
  ledger.transfers_ = read_lines(object, "transfers", transfer_from);
  if (object.contains("host_passes")) {
    ledger.host_passes_ = read_lines(object, "host_passes", [](const json::object& line) {
      return HostPassLine{read_enum<MemoryPass>(line, "pass", kPasses, kInLedger),
                          read<std::uint64_t>(line, "calls"), read<Bytes>(line, "read_bytes"),
                          read<Bytes>(line, "written_bytes"), read<double>(line, "time_s")};
    });
  }
  ledger.host_ = read_lines(object, "host", [](const json::object& line) {
    return HostLine{read_host_event(line), read<std::uint64_t>(line, "calls"),
                    read<double>(line, "time_s"),
                    line.contains("idle_s") ? read<double>(line, "idle_s") : 0};
  });
  if (object.contains("product_wait_s")) {
    ledger.library_wait_ = read<double>(object, "product_wait_s");
  }
  if (const auto* stand_ins = object.if_contains("stand_ins")) {
    ledger.stand_ins_ = json::value_to<std::vector<std::string>>(*stand_ins);
  }
  ledger.peak_live_elements_ = read<std::int64_t>(object, "peak_live_elements");
  return ledger;
}

}  // namespace dstune
