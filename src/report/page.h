#pragma once

#include <string>

namespace penstock::report {

/// A whole page around `body`, which is markup; `title` is text. The style has a light and a dark form, one
/// for narrow screens and one for paper.
std::string page(const std::string& title, const std::string& body);

/// "<section><h2>title</h2>body</section>"; `title` is text, `body` markup.
std::string section(const std::string& title, const std::string& body);

/// A square of the class's colour and a text.
std::string legend_entry(const std::string& css, const std::string& text);

}  // namespace penstock::report
