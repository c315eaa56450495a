#ifndef PLANCAST_TESTS_INTEROP_MSCCL_INTERPRETER_H_
#define PLANCAST_TESTS_INTEROP_MSCCL_INTERPRETER_H_

#include <cstdint>

#include "collectives/programs/chunk_program.h"

namespace plancast {

// Runs a program on random numbers, thread blocks taking turns at random, and
// looks whether the outputs are what all_reduce, all_gather or all_to_all leave.
// Shares nothing with the checker: the judge of what the checker lets pass. False
// also where it gets stuck or leaves its buffers. `runs` orders are tried.
bool ComputesItsCollective(const ChunkProgram& program, uint64_t seed, int runs);

}  // namespace plancast

#endif  // PLANCAST_TESTS_INTEROP_MSCCL_INTERPRETER_H_
