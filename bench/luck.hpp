// What makes a measured time differ from the true one.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>

namespace dstune::bench {

struct Noise {
  enum class Kind {
    normal,
    heavy,  ///< Student's t with 3 degrees of freedom, with the same standard deviation
    drift,  ///< normal, and all that comes after the first kSteady takes 5 % longer
  };

  double sd = 0;  ///< of the logarithm of a measured time
  Kind kind = Kind::normal;
};

/// Reads "3", "3heavy" or "3drift": percent. @throws std::invalid_argument
inline Noise noise_from(const std::string& text) {
  std::size_t end = 0;
  Noise noise{.sd = std::stod(text, &end) / 100};
  const std::string kind = text.substr(end);
  if (kind == "heavy") {
    noise.kind = Noise::Kind::heavy;
  } else if (kind == "drift") {
    noise.kind = Noise::Kind::drift;
  } else if (!kind.empty()) {
    throw std::invalid_argument("noise is a number of percent, and may end in heavy or drift");
  }
  return noise;
}

/// The luck of one measurement after another.
class Luck {
 public:
  static constexpr int kSteady = 12;

  Luck(const Noise& noise, std::uint64_t seed) : noise_(noise), generator_(seed) {}

  /// What the next measured time is multiplied by.
  double next() {
    const bool is_late = noise_.kind == Noise::Kind::drift && measured_++ >= kSteady;
    const double drift = is_late ? 0.05 : 0;
    const double luck =
        noise_.kind == Noise::Kind::heavy ? heavy_(generator_) / kHeavy : normal_(generator_);
    return std::exp(noise_.sd * luck + drift);
  }

 private:
  static constexpr double kHeavy = 1.7320508075688772;  // the standard deviation of that t

  Noise noise_;
  std::mt19937_64 generator_;
  std::normal_distribution<double> normal_;
  std::student_t_distribution<double> heavy_{3};
  int measured_ = 0;
};

}  // namespace dstune::bench
