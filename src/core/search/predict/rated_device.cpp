#include "core/search/predict/rated_device.hpp"

#include <algorithm>

namespace dstune {

StepTime RatedDevice::time() const {
  StepTime time;
  std::copy_n(time_parts().begin(), kStepParts, time.parts.begin());
  return time;
}

void RatedDevice::account(const Work& work) {
  take(StepPart::launches, rates_.launch);
  if (work.operation == "gemm") {
    multiply(work);
    return;
  }
  const auto traffic = static_cast<double>(work.read_bytes() + work.written_bytes());
  const Seconds time = std::max(work.flops / rates_.flops_per_s, traffic / rates_.copy_bytes_per_s);
  take(part_of(work.operation), time);
}

void RatedDevice::account_on_host(const Work& work) {
  if (!knows_host()) return account(work);
  const std::size_t part = index_of(part_of(work.operation));
  advance_host(host_rates_.time_of_pass(work) * factors_[part], part);
}

void RatedDevice::do_transfer(const HostTransfer& copy) {
  if (!knows_host()) return account(work_of(Copy{copy.from, copy.to}));
  take(StepPart::step_passes, host_rates_.time_of(copy));
}

double RatedDevice::product_rate(const Work& product) {
  const std::array operands{product.reads.begin()[0].bytes, product.reads.begin()[1].bytes,
                            product.writes.begin()[0].bytes};
  const auto known = std::find_if(products_.begin(), products_.end(),
                                  [&](const auto& other) { return other.operands == operands; });
  if (known != products_.end()) return known->flops_per_s;
  return products_.emplace_back(KnownProduct{operands, rate_of(rates_, product)}).flops_per_s;
}

// How much of the memory's time the arithmetic hides is not measured; the whole takes at least as
// long as the product's rate says.
void RatedDevice::multiply(const Work& product) {
  const auto traffic = static_cast<double>(product.read_bytes() + product.written_bytes());
  const Seconds memory = traffic / rates_.copy_bytes_per_s;
  const Seconds whole = std::max(product.flops / product_rate(product), memory);
  take(StepPart::products, whole - memory);
  take(StepPart::product_memory, memory);
}

void RatedCollectives::touch(CollectiveKind kind, Tensor in, Tensor out) {
  const CollectiveRate& rate = rate_of(rated_->rates(), {kind, in.dtype, size(), spacing_});
  const Bytes bytes = std::max(in.size(), out.size());
  rated_->take(StepPart::messages, ring_steps(kind, size()) * rate.latency);
  rated_->take(part_of(kind), wire_bytes(kind, bytes, size()) / rate.bytes_per_s);
}

std::unique_ptr<Collectives> RatedCollectives::do_sub_group(const std::vector<int>& ranks,
                                                            int own) {
  return std::make_unique<RatedCollectives>(*rated_, own, static_cast<int>(ranks.size()),
                                            spacing_ * spacing_of(ranks));
}

}  // namespace dstune
