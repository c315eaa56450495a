#include "strategy/profile/update_bytes.h"

#include <optional>

namespace plancast {

UpdateBytes UpdateBytesOf(const SoftwareProfile& profile, DType dtype) {
  const double parameter = ElementBytes(profile.ParamType(dtype));
  const std::optional<DType> master = profile.MasterType(dtype);
  UpdateBytes bytes;
  bytes.weight = master.has_value() ? ElementBytes(*master) : parameter;
  bytes.rest = master == DType::kInt16 ? parameter : 0;
  bytes.copy = master.has_value() ? parameter : 0;
  bytes.first = ElementBytes(profile.types.state_dtype);
  bytes.second = ElementBytes(profile.SecondStateType());
  return bytes;
}

}  // namespace plancast
