#ifndef PLANCAST_COMPILER_PROGRAM_SHARED_PORTS_H_
#define PLANCAST_COMPILER_PROGRAM_SHARED_PORTS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "compiler/bind/bind.h"
#include "compiler/program/compiled_body.h"

namespace plancast {

// A tensor that one module keeps for its backward pass and hands on is the same that the
// next module keeps or reads. Blocks as they are lowered count it for both; where both
// modules are on one virtual stage it is there once. The first keeps it (it lends), the
// second neither takes it over nor gives it up (it borrows): the backward pass of the
// second is over before that of the first.
class PortVariants {
 public:
  using Ports = uint64_t;  // a bit for each of the first 64
  using SharedBody = std::shared_ptr<const CompiledBody>;

  // The body with some of its in-ports borrowed and of its out-ports lent, made once.
  // Thread-safe.
  SharedBody Of(const SharedBody& body, Ports borrowed, Ports lent);

 private:
  std::mutex mutex_;
  std::map<std::tuple<const CompiledBody*, Ports, Ports>, SharedBody> made_;
};

// Which ports between two modules, one behind the other, are one tensor.
PortVariants::Ports SharedPorts(const CompiledBody& first, const CompiledBody& second);

// Runs of bodies that share tensors with their neighbours, of variants of these, which are
// appended to `bodies`; runs end where what they share changes.
void SharePorts(PortVariants* variants, std::vector<std::vector<StageRun>>* stages,
                std::vector<PortVariants::SharedBody>* bodies);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_PROGRAM_SHARED_PORTS_H_
