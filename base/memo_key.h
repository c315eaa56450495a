#ifndef PLANCAST_BASE_MEMO_KEY_H_
#define PLANCAST_BASE_MEMO_KEY_H_

#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

// Inside of a struct: lists all of its fields for MemoKey, in their order. One that is
// missing does not compile, so no key can leave it out.
#define PLANCAST_KEY_FIELDS(Type, ...)       \
  friend auto KeyFields(const Type& value) { \
    const auto& [__VA_ARGS__] = value;       \
    return std::tie(__VA_ARGS__);            \
  }

namespace plancast {

// Appends all of a value to a memo key: values are equal if and only if their keys are. Numbers
// are taken as they lie in memory, so a key is for this process and for nobody to read.
template <typename T>
std::enable_if_t<std::is_arithmetic_v<T> || std::is_enum_v<T>> AppendKey(T number,
                                                                         std::string* key) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &number, sizeof(T));
  key->append(bytes, sizeof(T));
}

inline void AppendKey(const std::string& text, std::string* key) {
  AppendKey(text.size(), key);
  key->append(text);
}

template <typename T>
void AppendKey(const std::optional<T>& value, std::string* key);
template <typename T>
void AppendKey(const std::vector<T>& values, std::string* key);
template <typename T>
void AppendKey(const std::set<T>& values, std::string* key);
template <typename K, typename V>
void AppendKey(const std::map<K, V>& values, std::string* key);

// A struct with PLANCAST_KEY_FIELDS.
template <typename T>
auto AppendKey(const T& value, std::string* key) -> std::void_t<decltype(KeyFields(value))> {
  std::apply([key](const auto&... fields) { (AppendKey(fields, key), ...); }, KeyFields(value));
}

template <typename T>
void AppendKey(const std::optional<T>& value, std::string* key) {
  AppendKey(value.has_value(), key);
  if (value.has_value()) AppendKey(*value, key);
}

template <typename Values>
void AppendEach(const Values& values, std::string* key) {
  AppendKey(values.size(), key);
  for (const auto& value : values) AppendKey(value, key);
}

template <typename T>
void AppendKey(const std::vector<T>& values, std::string* key) {
  AppendEach(values, key);
}

template <typename T>
void AppendKey(const std::set<T>& values, std::string* key) {
  AppendEach(values, key);
}

template <typename K, typename V>
void AppendKey(const std::map<K, V>& values, std::string* key) {
  AppendKey(values.size(), key);
  for (const auto& [name, value] : values) {
    AppendKey(name, key);
    AppendKey(value, key);
  }
}

template <typename T>
std::string MemoKey(const T& value) {
  std::string key;
  AppendKey(value, &key);
  return key;
}

}  // namespace plancast

#endif  // PLANCAST_BASE_MEMO_KEY_H_
