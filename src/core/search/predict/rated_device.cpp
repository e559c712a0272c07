#include "core/search/predict/rated_device.hpp"

#include <algorithm>

namespace dstune {

StepTime RatedDevice::time() const {
  StepTime time;
  std::copy_n(time_parts().begin(), kStepParts, time.parts.begin());
  return time;
}

void RatedDevice::account(const Work& work) {
  advance(rates_.launch, index_of(StepPart::launches));
  if (work.operation == "gemm") {
    multiply(work);
    return;
  }
  const auto traffic = static_cast<double>(work.read_bytes() + work.written_bytes());
  const Seconds time = std::max(work.flops / rates_.flops_per_s, traffic / rates_.copy_bytes_per_s);
  advance(time, index_of(part_of(work.operation)));
}

// Nobody has measured how much of the memory's time arithmetic hides: the whole is never shorter
// than the product's rate says.
void RatedDevice::multiply(const Work& product) {
  const auto traffic = static_cast<double>(product.read_bytes() + product.written_bytes());
  const Seconds memory = traffic / rates_.copy_bytes_per_s;
  const Seconds whole = std::max(product.flops / rate_of(rates_, product), memory);
  advance(whole - memory, index_of(StepPart::products));
  advance(memory, index_of(StepPart::product_memory));
}

void RatedCollectives::account(CollectiveKind kind, Bytes bytes) {
  const CollectiveRate& rate = rated_->rates().at(kind);
  rated_->advance(ring_steps(kind, size()) * rate.latency, index_of(StepPart::messages));
  rated_->advance(wire_bytes(kind, bytes, size()) / rate.bytes_per_s, index_of(part_of(kind)));
}

std::unique_ptr<Collectives> RatedCollectives::do_sub_group(const std::vector<int>& ranks,
                                                            int own) {
  return std::make_unique<RatedCollectives>(*rated_, own, static_cast<int>(ranks.size()));
}

}  // namespace dstune
