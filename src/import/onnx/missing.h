// MissingOperators: what a model needs and we lack, collected so that one message names everything.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "import/survey.h"

namespace polyphase {

class MissingOperators {
 public:
  // `opset` of the node's domain; `why` empty: the operator is unknown to us.
  void add(std::string_view domain, std::string_view op_type, std::int64_t opset, std::string_view node,
           std::string why = {});
  bool empty() const { return entries_.empty(); }
  Error error() const;
  // Marks what is missing.
  void tell(OperatorSurvey& survey) const;

 private:
  struct Entry {
    std::int64_t opset = 0;
    std::string first_node;
    std::string why;
    std::int64_t count = 0;
  };
  std::map<std::pair<std::string, std::string>, Entry> entries_;
};

// What to use instead of an ONNX operator that we lack.
std::string nearest_alternative(std::string_view domain, std::string_view op_type);

}  // namespace polyphase
