#ifndef PLANCAST_GRAPH_MODEL_NF4_H_
#define PLANCAST_GRAPH_MODEL_NF4_H_

namespace plancast {

// Bytes of an element in 4-bit NormalFloat with double quantisation: a maximum in 8 bits for
// each 64 elements, and one in fp32 for each 256 of these, 4.127 bits in all (Dettmers et al.
// 2023, QLoRA, section 3; bitsandbytes, functional.py: quantize_4bit, compress_statistics).
inline constexpr double kNf4ElementBytes = 0.5 + 1.0 / 64 + 4.0 / (64 * 256);

}  // namespace plancast

#endif  // PLANCAST_GRAPH_MODEL_NF4_H_
