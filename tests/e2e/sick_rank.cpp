// Loaded with LD_PRELOAD into all ranks: the matrix products of rank DSTUNE_SICK_RANK are those of
// a sick machine. DSTUNE_SICKNESS: "fails", "loses" (its device), "miscounts", "hangs",
// "slow" or "slowest".
#include <cstdlib>
#include <stdexcept>
#include <string>

#include <dlfcn.h>
#include <unistd.h>

#include "core/device/faults.hpp"

namespace {

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

void suffer() {
  static const bool is_sick = !variable("DSTUNE_SICK_RANK").empty() &&
                              variable("DSTUNE_SICK_RANK") == variable("OMPI_COMM_WORLD_RANK");
  static const std::string sickness = variable("DSTUNE_SICKNESS");
  if (!is_sick) return;
  if (sickness == "fails") throw std::runtime_error("uncorrectable memory error");
  if (sickness == "loses") throw dstune::DeviceLostError("an illegal memory access");
  if (sickness == "miscounts") throw dstune::WrongSumsError("the sum of 1 and 2 is 4");
  if (sickness == "slow") usleep(2000);
  if (sickness == "slowest") usleep(10'000);  // beside whatever else the machine does
  while (sickness == "hangs") pause();
}

}  // namespace

extern "C" void cblas_sgemm(int order, int transpose_a, int transpose_b, int m, int n, int k,
                            float alpha, const float* a, int lda, const float* b, int ldb,
                            float beta, float* c, int ldc) {
  using Function = void (*)(int, int, int, int, int, int, float, const float*, int, const float*,
                            int, float, float*, int);
  static const auto healthy = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "cblas_sgemm"));
  suffer();
  healthy(order, transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
