#pragma once

#include <cctype>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::report {

/// Reads a page as XML and says what is wrong with it: tags that do not nest, attributes without quotes or
/// said twice, characters that should be escaped, entities that are not known. Empty: nothing. Knows what the
/// pages use and no more.
class WellFormed {
 public:
  explicit WellFormed(std::string_view text) : text_(text) {}

  std::string problem() {
    if (text_.starts_with("<!DOCTYPE html>")) at_ = 15;
    while (problem_.empty() && at_ < text_.size()) {
      text_[at_] == '<' ? tag() : content();
    }
    if (problem_.empty() && !open_.empty()) problem_ = "<" + open_.back() + "> is not closed";
    return problem_;
  }
  int elements() const { return elements_; }
  /// The attributes, as "name=value".
  const std::vector<std::string>& attributes() const { return attributes_; }

 private:
  void fail(const std::string& what) {
    if (problem_.empty())
      problem_ = what + " at " + std::to_string(at_) + ": " + std::string(text_.substr(at_, 60));
  }

  void content() {
    const char c = text_[at_];
    if (c == '&') return entity();
    const bool in_style = !open_.empty() && open_.back() == "style";
    if (c == '>' && !in_style) return fail("a bare >");
    if (open_.empty() && std::isspace(static_cast<unsigned char>(c)) == 0) return fail("text outside");
    ++at_;
  }

  void entity() {
    for (const std::string_view known : {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"}) {
      if (text_.substr(at_).starts_with(known)) {
        at_ += known.size();
        return;
      }
    }
    fail("an unknown entity");
  }

  std::string name() {
    std::string result;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 ||
                                  text_[at_] == '-' || text_[at_] == ':'))
      result += text_[at_++];
    if (result.empty()) fail("no name");
    return result;
  }

  bool take(std::string_view what) {
    if (!text_.substr(at_).starts_with(what)) return false;
    at_ += what.size();
    return true;
  }

  void tag() {
    ++at_;
    if (take("/")) {
      const std::string closed = name();
      if (open_.empty() || open_.back() != closed) return fail("</" + closed + "> closes nothing");
      open_.pop_back();
      if (!take(">")) fail("no >");
      return;
    }
    const std::string opened = name();
    ++elements_;
    std::vector<std::string> seen;
    while (problem_.empty() && take(" ")) {
      const std::string key = name();
      for (const std::string& other : seen) {
        if (other == key) return fail("attribute twice");
      }
      seen.push_back(key);
      if (!take("=\"")) return fail("an attribute without quotes");
      std::string value;
      while (problem_.empty() && at_ < text_.size() && text_[at_] != '"') {
        if (text_[at_] == '<') return fail("< in an attribute");
        const std::size_t before = at_;
        text_[at_] == '&' ? entity() : static_cast<void>(++at_);
        value += text_.substr(before, at_ - before);
      }
      attributes_.push_back(key + "=" + value);
      if (!take("\"")) return fail("an open attribute");
    }
    if (take("/>")) return;
    if (!take(">")) return fail("no >");
    open_.push_back(opened);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int elements_ = 0;
  std::vector<std::string> open_;
  std::vector<std::string> attributes_;
  std::string problem_;
};

}  // namespace penstock::report
