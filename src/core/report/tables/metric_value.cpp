#include "core/report/tables/metric_value.hpp"

namespace dstune {

double metric_value(Metric metric, const Measured& measured) {
  switch (metric) {
    case Metric::throughput:
      return measured.samples_per_s;
    case Metric::latency:
      return typical_step_time(measured) * 1e6;
    case Metric::tokens:
      return measured.tokens_per_s;
    case Metric::flops:
      return measured.flops_per_s_per_rank;
  }
  return 0;
}

std::string_view metric_key(Metric metric) {
  switch (metric) {
    case Metric::throughput:
      return "throughput";
    case Metric::latency:
      return "latency";
    case Metric::tokens:
      return "tokens_per_s";
    case Metric::flops:
      return "FLOPS_per_gpu";
  }
  return "";
}

bool is_better(Metric metric, double value, double other) {
  return metric == Metric::latency ? value < other : value > other;
}

}  // namespace dstune
