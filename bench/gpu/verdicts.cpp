#include "bench/gpu/verdicts.hpp"

#include <iostream>

#include "core/base/text.hpp"

namespace dstune::bench {

void Verdicts::begin(const std::string& title, const std::string& unit,
                     const std::string& reference, double aim) {
  aim_ = aim;
  std::cout << concat("\n", title, ", ", unit, "\n\n| | ours | ", reference,
                      " | ratio | aim | verdict |\n|:--|--:|--:|--:|--:|:--|")
            << std::endl;
}

void Verdicts::add(const std::string& name, double ours, double reference) {
  if (reference <= 0) return remark(name, ours, reference);
  const double ratio = ours / reference;
  const bool met = ratio >= aim_;
  ++judged_;
  if (!met) ++missed_;
  std::cout << concat("| ", name, " | ", fixed(ours, 1), " | ", fixed(reference, 1), " | ",
                      fixed(ratio, 3), " | ", fixed(aim_, 2), " | ", met ? "met" : "missed", " |")
            << std::endl;
}

void Verdicts::remark(const std::string& name, double ours, double reference) {
  std::cout << concat("| ", name, " | ", fixed(ours, 1), " | ",
                      reference > 0 ? fixed(reference, 1) : "none", " | ",
                      reference > 0 ? fixed(ours / reference, 3) : "", " | | not judged |")
            << std::endl;
}

int Verdicts::end() const {
  if (missed_ == 0) {
    std::cout << concat("\nall ", judged_, " aims met") << std::endl;
    return 0;
  }
  std::cout << concat("\n", missed_, " of ", judged_, " aims missed") << std::endl;
  return 1;
}

}  // namespace dstune::bench
