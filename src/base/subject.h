// The words by which an error names what it is about.
#pragma once

#include <string>
#include <string_view>

namespace polyphase {

// What an error is about. Its words are put together only where there is one: a run has a subject for each tensor.
class Subject {
 public:
  Subject(std::string_view words) : words_(words) {}    // NOLINT(google-explicit-constructor): words are a subject
  Subject(const char* words) : words_(words) {}         // NOLINT(google-explicit-constructor)
  Subject(const std::string& words) : words_(words) {}  // NOLINT(google-explicit-constructor)
  Subject(std::string_view words, std::string_view name) : words_(words), name_(name), is_named_(true) {}

  friend std::string operator+(const Subject& subject, std::string_view text) {
    std::string out(subject.words_);
    if (subject.is_named_) out.append(" '").append(subject.name_).append("'");
    return out.append(text);
  }

 private:
  std::string_view words_;
  std::string_view name_;
  bool is_named_ = false;
};

}  // namespace polyphase
