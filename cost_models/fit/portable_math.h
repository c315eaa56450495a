#ifndef PLANCAST_COST_MODELS_FIT_PORTABLE_MATH_H_
#define PLANCAST_COST_MODELS_FIT_PORTABLE_MATH_H_

namespace plancast {

// exp and log of the same bits on every processor. Those of glibc are chosen by what the
// processor can (fused multiplication or not) and differ in the last bit, which a search over
// an objective with steps makes a difference of the fourth digit. Only operations that IEEE 754
// rounds in one way are used; errors stay below two units of the last place.

// exp(x); infinity beyond the range of doubles, 0 below it, NaN of NaN.
double PortableExp(double x);

// ln(x); minus infinity of 0, NaN of NaN and of what is negative, infinity of infinity.
double PortableLog(double x);

}  // namespace plancast

#endif  // PLANCAST_COST_MODELS_FIT_PORTABLE_MATH_H_
