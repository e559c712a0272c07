// A table of speeds beside those of a reference, with the aim and whether it was met.
#pragma once

#include <string>

namespace dstune::bench {

/// Prints Markdown to stdout, a row as soon as it is known.
class Verdicts {
 public:
  /// @param unit       of all speeds, "TFLOP/s"
  /// @param reference  title of its column, "cuBLASLt alone"
  /// @param aim        ours over the reference's, at least
  void begin(const std::string& title, const std::string& unit, const std::string& reference,
             double aim);
  /// @param reference  0: there is none, and no verdict
  void add(const std::string& name, double ours, double reference);
  /// Likewise, never with a verdict.
  void remark(const std::string& name, double ours, double reference);

  /// The last line: "all 61 aims met" or "2 of 61 aims missed". @returns the exit code
  int end() const;

 private:
  double aim_ = 0;
  int judged_ = 0;
  int missed_ = 0;
};

}  // namespace dstune::bench
