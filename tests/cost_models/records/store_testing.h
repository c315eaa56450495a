#ifndef PLANCAST_TESTS_COST_MODELS_RECORDS_STORE_TESTING_H_
#define PLANCAST_TESTS_COST_MODELS_RECORDS_STORE_TESTING_H_

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <string>

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "cost_models/records/record_store.h"

// Small stores for tests.

namespace plancast {

// A path at which there is no file, another one at each call.
inline std::string FreshPath() {
  static int count = 0;
  std::string path = absl::StrCat(::testing::TempDir(), "/store_", getpid(), "_", count++, ".db");
  std::remove(path.c_str());
  return path;
}

inline KernelKey SomeKey(int64_t m) {
  KernelKey key;
  key.op = "gemm";
  key.shape = absl::StrCat("batch=1 m=", m, " n=1024 k=512");
  key.dtype = "bf16";
  key.layout = "forward";
  key.gpu = "H100-SXM-80GB";
  key.library = "cublas";
  key.version = "12.4";
  return key;
}

inline Sample SampleOf(double seconds) {
  Sample sample;
  sample.seconds = seconds;
  sample.count = 100;
  sample.source = "test";
  sample.timing = "graph";
  sample.date = "2026-11-22";
  return sample;
}

}  // namespace plancast

#endif  // PLANCAST_TESTS_COST_MODELS_RECORDS_STORE_TESTING_H_
