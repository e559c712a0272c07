#include "kernels/cuda/collectives/communicator_cache.hpp"

#include <set>
#include <utility>

#include "core/base/host/this_host.hpp"
#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/device/faults.hpp"

namespace dstune::cuda {

CommunicatorCache::CommunicatorCache(const CommunicatorLimits& limits, NcclLog log)
    : limits_(limits), log_(std::move(log)), recent_(limits.most, limits.reserve) {}

// The other ranks end theirs too.
CommunicatorCache::~CommunicatorCache() {
  communicators_.clear();
  endings_.wait(limits_.ending, {});
}

void CommunicatorCache::check() const {
  if (!lost_.empty()) throw DeviceLostError(lost_);
}

std::unique_ptr<Collectives> CommunicatorCache::collectives(Group& group, CudaDevice& device) {
  check();
  const CommunicatorMaker maker(device.gpu(), group, endings_, limits_.making);
  if (group.size() == 1) {
    return std::make_unique<NcclCollectives>(device, maker, nullptr, "", nullptr);
  }
  const Kept& kept = find_or_make(maker);
  const auto on_end = [this, maker](const NcclCollectives::End& end) {
    const Members members = maker.group().members();
    recent_.add_bytes(members, end.parts.bytes);
    if (!end.has_failed) return;
    recent_.drop(members);
    communicators_.erase(members);
    wait_for_the_end(maker);
  };
  return std::make_unique<NcclCollectives>(device, maker, kept.communicator.get(), kept.network,
                                           on_end);
}

CommunicatorCache::Kept& CommunicatorCache::find_or_make(const CommunicatorMaker& maker) {
  const Members members = maker.group().members();
  const auto found = communicators_.find(members);
  const bool usable = found != communicators_.end() && !found->second.communicator->has_failed();
  if (maker.group().vote(usable)) {
    recent_.use(members);
    return found->second;
  }
  if (found != communicators_.end()) drop({members}, maker);
  drop(recent_.to_drop_for_one_more(), maker);
  try {
    return make(maker, members);
  } catch (...) {
    wait_for_the_end(maker);
    throw;
  }
}

CommunicatorCache::Kept& CommunicatorCache::make(CommunicatorMaker maker, const Members& members) {
  Kept& kept = communicators_[members] = {maker.make(), ""};
  recent_.use(members);
  recent_.add_bytes(members, maker.cost().bytes);
  drop(recent_.to_drop(), maker);
  kept.network = report(maker);
  return kept;
}

// NCCL chooses a network even where no message leaves the host.
std::string CommunicatorCache::report(const CommunicatorMaker& maker) {
  const auto names = maker.group().gather(host_name());
  if (maker.group().rank() != 0) return "";
  const std::set<std::string> hosts(names.begin(), names.end());
  std::string network = hosts.size() > 1 ? log_.facts().network : "";
  const auto& cost = maker.cost();
  log_line(concat("communicator of ", maker.group().size(), " ranks: ", format_seconds(cost.time),
                  ", ", format_bytes(cost.bytes),
                  network.empty() ? "" : concat(", network: ", network)));
  if (network != "Socket" || has_warned_) return network;
  has_warned_ = true;
  log_warning(concat("NCCL sends between ", hosts.size(), " hosts over sockets, far below the ",
                     "speed of InfiniBand or of a cloud's fabric; if they have one, load the ",
                     "site's NCCL plugin (libnccl-net.so: libfabric, EFA) or see NCCL_IB_HCA and ",
                     "NCCL_IB_DISABLE"));
  return network;
}

void CommunicatorCache::drop(const std::vector<Members>& groups, const CommunicatorMaker& maker) {
  for (const Members& members : groups) {
    recent_.drop(members);
    communicators_.erase(members);
  }
  endings_.wait(limits_.making_room, maker.waiting().meanwhile);
}

void CommunicatorCache::wait_for_the_end(const CommunicatorMaker& maker) noexcept {
  if (endings_.wait(limits_.ending, maker.waiting().meanwhile)) return;
  lost_ = concat("ncclCommAbort has not returned in ", format_seconds(limits_.ending));
}

}  // namespace dstune::cuda
