#include "tests/support/checking_device.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "core/base/text.hpp"

namespace dstune::test {

namespace {

std::uintptr_t address_of(const void* data) { return reinterpret_cast<std::uintptr_t>(data); }

}  // namespace

void CheckingDevice::account(const Work& work) {
  const Stream stream = current_stream();
  // Events recorded from now on come after it.
  const std::uint64_t tick = record(stream).after[static_cast<std::size_t>(stream)] + 1;
  const auto use = [&](const Operand& operand, bool is_written) {
    if (operand.extent == 0) return;
    const std::uintptr_t begin = address_of(operand.data);
    check({std::string(work.operation), begin, begin + operand.extent, is_written, stream, tick});
  };
  for (const Operand& operand : work.reads) use(operand, false);
  for (const Operand& operand : work.writes) use(operand, true);
}

bool CheckingDevice::comes_after(Stream stream, const Access& access) const {
  return stream == access.stream ||
         clock_of(stream)[static_cast<std::size_t>(access.stream)] >= access.tick;
}

void CheckingDevice::check(const Access& access) {
  Accesses& earlier = accesses_to(access.begin);
  for (const Access& other : earlier) {
    const bool overlap = other.begin < access.end && access.begin < other.end;
    if (!overlap || (!other.writes && !access.writes) || comes_after(access.stream, other)) {
      continue;
    }
    races_.push_back(concat(access.operation, " on ", name_of(access.stream), " beside ",
                            other.operation, " on ", name_of(other.stream)));
  }
  const auto is_replaced = [&](const Access& other) {
    return other.stream == access.stream && other.writes == access.writes &&
           access.begin <= other.begin && other.end <= access.end;
  };
  earlier.erase(std::remove_if(earlier.begin(), earlier.end(), is_replaced), earlier.end());
  earlier.push_back(access);
}

CheckingDevice::Accesses& CheckingDevice::accesses_to(std::uintptr_t address) {
  const auto next = allocations_.upper_bound(address);
  if (next == allocations_.begin()) throw std::logic_error("CheckingDevice: memory of nobody");
  return std::prev(next)->second;
}

void* CheckingDevice::do_allocate(MemoryCategory category, Bytes size) {
  void* data = DryDevice::do_allocate(category, size);
  allocations_[address_of(data)];
  return data;
}

void CheckingDevice::do_free(void* data, Bytes size) noexcept {
  allocations_.erase(address_of(data));
  DryDevice::do_free(data, size);
}

void CheckingDevice::on_give_back(void* data, Stream home,
                                  const std::array<bool, kStreams>& used_on) noexcept {
  const auto is_awaited = [&](const Access& access) {
    if (comes_after(home, access)) return true;
    for (std::size_t stream = 0; stream < kStreams; ++stream) {
      if (used_on[stream] && comes_after(static_cast<Stream>(stream), access)) return true;
    }
    return false;
  };
  for (const Access& access : allocations_[address_of(data)]) {
    if (is_awaited(access)) continue;
    races_.push_back(concat("given back to ", name_of(home), " beside ", access.operation, " on ",
                            name_of(access.stream)));
  }
}

void CheckingCollectives::touch(CollectiveKind kind, Tensor in, Tensor out) {
  checking_.account({name_of(kind), 0, {in}, {out}});
}

std::unique_ptr<Collectives> CheckingCollectives::do_sub_group(const std::vector<int>& ranks,
                                                               int own) {
  return std::make_unique<CheckingCollectives>(checking_, own, static_cast<int>(ranks.size()));
}

}  // namespace dstune::test
