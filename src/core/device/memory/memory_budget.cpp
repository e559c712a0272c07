#include "core/device/memory/memory_budget.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "core/base/text.hpp"

namespace dstune {

namespace {

constexpr std::array<std::string_view, 2> kAllocators = {"exact", "caching"};
constexpr std::array<std::string_view, kTiers> kTierNames = {"device", "pinned", "pageable",
                                                             "locked", "nvme"};

std::string describe_use(Bytes in_use, Bytes limit, Bytes reserved) {
  if (limit >= kNoLimit) return concat(format_bytes(in_use), " allocated");
  if (reserved == 0) return concat(format_bytes(in_use), " of ", format_bytes(limit), " allocated");
  return concat(format_bytes(in_use), " allocated and ", format_bytes(reserved), " of ",
                format_bytes(limit), " reserved");
}

}  // namespace

std::string_view name_of(AllocatorModel allocator) {
  return kAllocators[static_cast<std::size_t>(allocator)];
}

std::optional<AllocatorModel> allocator_from(std::string_view name) {
  const auto* const found = std::find(kAllocators.begin(), kAllocators.end(), name);
  if (found == kAllocators.end()) return std::nullopt;
  return static_cast<AllocatorModel>(found - kAllocators.begin());
}

std::string_view name_of(MemoryCategory category) {
  constexpr std::array<std::string_view, kMemoryCategories> kNames = {
      "parameters", "gradients", "optimizer", "buckets", "activations", "temporaries"};
  return kNames[static_cast<std::size_t>(category)];
}

std::string_view name_of(Tier tier) { return kTierNames[static_cast<std::size_t>(tier)]; }

std::string_view description_of(Tier tier) {
  switch (tier) {
    case Tier::pinned:
      return "the host's memory (pinned)";
    case Tier::pageable:
      return "the host's memory (pageable)";
    case Tier::locked:
      return "the host's memory (locked)";
    case Tier::nvme:
      return "space on the drive";
    case Tier::device:
      break;
  }
  return "memory";
}

std::optional<Tier> tier_from(std::string_view name) {
  const auto* const found = std::find(kTierNames.begin(), kTierNames.end(), name);
  if (found == kTierNames.end()) return std::nullopt;
  return static_cast<Tier>(found - kTierNames.begin());
}

std::string_view name_of(StepPhase phase) {
  constexpr std::array<std::string_view, kStepPhases> kNames = {
      "setup", "forward", "backward", "reduction", "update", "parameters"};
  return kNames[static_cast<std::size_t>(phase)];
}

Bytes MemoryUse::total() const { return std::accumulate(bytes.begin(), bytes.end(), Bytes{0}); }

OutOfMemoryError::OutOfMemoryError(MemoryCategory asked_for, Bytes requested_bytes,
                                   Bytes in_use_bytes, Bytes limit_bytes, Bytes reserved_bytes,
                                   std::string why, Tier of_tier)
    : Error(concat("out of ", description_of(of_tier), ": requested ",
                   format_bytes(requested_bytes), " for ", name_of(asked_for), " with ",
                   describe_use(in_use_bytes, limit_bytes, reserved_bytes),
                   why.empty() ? "" : concat("; the system refused it: ", why))),
      tier(of_tier),
      category(asked_for),
      requested(requested_bytes),
      in_use(in_use_bytes),
      limit(limit_bytes),
      reserved(reserved_bytes),
      refusal(std::move(why)) {}

void MemoryBudget::count_as(AllocatorModel allocator) {
  cache_.reset();
  if (allocator == AllocatorModel::caching) cache_.emplace(limit_, source_);
}

bool MemoryBudget::has_room(Bytes size, Stream stream) const noexcept {
  return cache_ ? cache_->has_room(size, stream) : size <= limit_ - in_use();
}

void MemoryBudget::release_cached() noexcept {
  if (cache_) cache_->release_cached();
}

CachingModel::FreeLists MemoryBudget::free_lists() const {
  return cache_ ? cache_->free_lists() : CachingModel::FreeLists();
}

MemoryBudget::Block MemoryBudget::reserve(MemoryCategory category, Bytes size, Stream stream) {
  const auto block = try_reserve(category, size, stream);
  return block ? *block : reserve_at_last(category, size, stream);
}

std::optional<MemoryBudget::Block> MemoryBudget::try_reserve(MemoryCategory category, Bytes size,
                                                             Stream stream) {
  if (!has_room(size, stream)) return std::nullopt;
  std::optional<Block> block = CachingModel::kNoBlock;
  if (cache_) block = cache_->take(size, stream);
  if (block) count(category, size);
  return block;
}

MemoryBudget::Block MemoryBudget::reserve_at_last(MemoryCategory category, Bytes size,
                                                  Stream stream) {
  if (!cache_) {
    if (!has_room(size)) refuse(category, size);
    count(category, size);
    return CachingModel::kNoBlock;
  }
  cache_->release_cached();
  const auto block = cache_->take_segment(size, stream);
  if (!block) refuse(category, size);
  count(category, size);
  return *block;
}

void MemoryBudget::refuse(MemoryCategory category, Bytes size) const {
  const Bytes wanted = cache_ ? CachingModel::segment_size(size) : size;
  throw OutOfMemoryError(category, wanted, allocated_, limit_, reserved(),
                         cache_ ? cache_->refusal() : "");
}

void MemoryBudget::count(MemoryCategory category, Bytes size) noexcept {
  in_use_.at(category) += size;
  allocated_ += size;
  peak_.active = std::max(peak_.active, in_use());
  peak_.reserved = std::max(peak_.reserved, reserved());
  if (in_use_.at(category) > peak_.categories.at(category)) {
    peak_.categories.at(category) = in_use_.at(category);
    peak_.phases[static_cast<std::size_t>(category)] = phase_;
  }
  if (allocated_ > peak_.allocated) {
    peak_.allocated = allocated_;
    peak_.at_peak = in_use_;
    peak_.phase = phase_;
  }
}

void MemoryBudget::release(MemoryCategory category, Bytes size, Block block) noexcept {
  in_use_.at(category) -= size;
  allocated_ -= size;
  if (cache_) cache_->give_back(block);
}

void MemoryBudget::end_flight(Bytes size, Block block) noexcept {
  in_flight_ -= size;
  if (cache_) cache_->give_back(block);
}

void MemoryBudget::reset_peak() noexcept {
  peak_.allocated = allocated_;
  peak_.active = in_use();
  peak_.phase = phase_;
  peak_.at_peak = in_use_;
  peak_.categories = in_use_;
  peak_.phases.fill(phase_);
  peak_.reserved = reserved();
}

}  // namespace dstune
