#include "core/device/dry/repeated_work.hpp"

#include <utility>

namespace dstune {

std::int64_t FoldedMicroSteps::fold(std::int64_t left) {
  constexpr std::int64_t kUnlike = 2;
  if (!device_.folds() || left <= 0) return 0;
  Ledger& ledger = device_.ledger();
  Ledger work = ledger.since(before_);
  const MemoryUse& use = device_.memory().use();
  const Bytes in_flight = device_.memory().in_flight();
  auto cache = device_.memory().free_lists();
  if (++walked_ > kUnlike && use == last_use_ && in_flight == last_in_flight_ &&
      cache == last_cache_ && work.same_work(last_work_)) {
    ledger.repeat(work, static_cast<std::uint64_t>(left));
    return left;
  }
  before_ = ledger;
  last_work_ = std::move(work);
  last_use_ = use;
  last_in_flight_ = in_flight;
  last_cache_ = std::move(cache);
  return 0;
}

}  // namespace dstune
