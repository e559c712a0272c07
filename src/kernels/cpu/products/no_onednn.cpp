// Stands in for onednn.cpp in a build without oneDNN.
#include <stdexcept>

#include "kernels/cpu/products/onednn.hpp"

namespace dstune::cpu {

struct Onednn::State {};

bool Onednn::is_there() { return false; }
std::string Onednn::version() { return ""; }
bool Onednn::multiplies_bf16() { return false; }

Onednn::Onednn(int /*threads*/) { throw std::logic_error("this build has no oneDNN"); }
Onednn::~Onednn() = default;

void Onednn::sgemm(const Product& /*product*/, Panel /*a*/, Panel /*b*/, Panel /*c*/) {}
void Onednn::multiply(const Gemm& /*op*/) {}
void Onednn::trim() {}

}  // namespace dstune::cpu
