#pragma once

#include <utility>

namespace penstock {

/// Empties JSON from the leaves up. Its own destructor makes a list of what it holds, and where there is no
/// memory for that the program ends; of what is empty it makes none.
template <typename Json>
void take_apart(Json& json) noexcept {
  for (auto child = json.begin(); json.is_structured() && child != json.end(); ++child) take_apart(*child);
  if (json.is_array()) json.template get_ref<typename Json::array_t&>().clear();
  if (json.is_object()) json.template get_ref<typename Json::object_t&>().clear();
}

/// JSON that is taken apart at its end. For reading take nlohmann::json: one that keeps its order copies, and
/// destroys, what it has whenever it grows, unless room is reserved.
template <typename Json>
class KeptJson {
 public:
  explicit KeptJson(Json json) : json_(std::move(json)) {}
  ~KeptJson() { take_apart(json_); }
  KeptJson(const KeptJson&) = delete;
  KeptJson& operator=(const KeptJson&) = delete;

  Json& operator*() { return json_; }
  const Json& operator*() const { return json_; }
  const Json* operator->() const { return &json_; }

 private:
  Json json_;
};

}  // namespace penstock
