#include <algorithm>
#include <array>

#include "onnx/ops.h"

namespace penstock::onnx {
namespace {

/// A value whose axes have letters. Axes of an ellipsis have capital ones from its end on: Z, Y, ...
struct Term {
  Value value;
  std::string letters;
};

struct Equation {
  std::vector<std::string> inputs;
  std::string output;
};

/// "...": as many letters as the rank leaves for it.
std::string lettered(const Importer& at, const std::string& text, std::size_t rank) {
  const std::size_t dots = text.find("...");
  if (dots == std::string::npos) return text;
  const std::size_t named = text.size() - 3;
  if (named > rank) at.fail("has an equation that does not fit its inputs");
  std::string ellipsis;
  for (std::size_t i = rank - named; i-- > 0;) ellipsis += static_cast<char>('Z' - i);
  return text.substr(0, dots) + ellipsis + text.substr(dots + 3);
}

Equation parse(Importer& at) {
  std::string text = at.text("equation", "");
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  for (const char c : text) {
    if (c >= 'A' && c <= 'Z') at.fail("has capital letters in its equation, which is not supported");
  }
  const std::size_t arrow = text.find("->");
  std::string left = text.substr(0, arrow) + ",";
  Equation equation;
  std::size_t longest = 0;
  for (std::size_t comma = left.find(','); comma != std::string::npos; comma = left.find(',')) {
    const std::size_t index = equation.inputs.size();
    if (index >= at.node().inputs.size()) at.fail("has an equation for more inputs than there are");
    const std::size_t rank = at.shape(index).size();
    const std::string term = lettered(at, left.substr(0, comma), rank);
    if (term.size() != rank) at.fail("has an equation that does not fit its inputs");
    longest = std::max(longest, static_cast<std::size_t>(std::count_if(
                                    term.begin(), term.end(), [](char c) { return c >= 'A' && c <= 'Z'; })));
    equation.inputs.push_back(term);
    left.erase(0, comma + 1);
  }
  if (equation.inputs.size() != at.node().inputs.size())
    at.fail("has an equation for another number of inputs");
  if (arrow != std::string::npos) {
    const std::string given = text.substr(arrow + 2);
    const bool dots = given.find("...") != std::string::npos;
    equation.output = dots ? lettered(at, given, given.size() - 3 + longest) : given;
    return equation;
  }
  // Without an arrow: what stands once, in the order of the alphabet, behind the ellipsis.
  std::string all;
  for (const std::string& term : equation.inputs) all += term;
  for (std::size_t i = longest; i-- > 0;) equation.output += static_cast<char>('Z' - i);
  for (char c = 'a'; c <= 'z'; ++c) {
    if (std::count(all.begin(), all.end(), c) == 1) equation.output += c;
  }
  return equation;
}

bool holds(const std::string& letters, char c) {
  return letters.find(c) != std::string::npos;
}

/// Axes with the same letter become one: their diagonal.
Term without_repeats(Importer& at, Term term) {
  for (std::size_t i = 0; i < term.letters.size(); ++i) {
    const std::size_t k = term.letters.find(term.letters[i], i + 1);
    if (k == std::string::npos) continue;
    const Extents dims = at.net().shape(term.value);
    if (dims[i] != dims[k]) at.fail("takes the diagonal of axes that differ");
    if (dims[i] > 4096) at.fail("takes a diagonal that is too long");
    std::vector<double> eye;
    for (std::int64_t r = 0; r < dims[i]; ++r) {
      for (std::int64_t c = 0; c < dims[i]; ++c) eye.push_back(r == c ? 1 : 0);
    }
    Extents along(dims.size(), 1);
    along[i] = along[k] = dims[i];
    const Value diagonal = apply(at, "where", {at.table(along, eye), term.value, at.table({1}, {0})});
    term.value = at.net().reduce(Reduction::sum, diagonal, {static_cast<std::int64_t>(k)});
    term.letters.erase(k, 1);
    --i;
  }
  return term;
}

/// Sums over the letters that nobody needs.
Term reduced_to(Importer& at, Term term, const std::string& needed) {
  Extents axes;
  std::string kept;
  for (std::size_t i = 0; i < term.letters.size(); ++i) {
    if (holds(needed, term.letters[i])) {
      kept += term.letters[i];
    } else {
      axes.push_back(static_cast<std::int64_t>(i));
    }
  }
  if (axes.empty()) return term;
  return {at.net().reduce(Reduction::sum, term.value, axes), kept};
}

std::int64_t extent_of(const Importer& /*at*/, const Extents& dims, const std::string& letters, char c) {
  const std::size_t place = letters.find(c);
  return place == std::string::npos ? 1 : dims[place];
}

/// With its axes in the order of `letters`, all of which it has.
Value ordered(Importer& at, const Term& term, const std::string& letters) {
  if (letters == term.letters || letters.empty()) return term.value;
  Extents order;
  for (const char c : letters) order.push_back(static_cast<std::int64_t>(term.letters.find(c)));
  return at.net().transpose(term.value, order);
}

/// The product of two as one product of matrices for each element of the axes that stay in both.
Term joined(Importer& at, const Term& a, const Term& b, const std::string& needed) {
  std::string batch, left, right, inner;
  const Extents da = at.net().shape(a.value), db = at.net().shape(b.value);
  for (const char c : a.letters) {
    if (!holds(b.letters, c)) {
      left += c;
    } else {
      if (extent_of(at, da, a.letters, c) != extent_of(at, db, b.letters, c))
        at.fail("has axes of one letter that differ, which is not supported");
      (holds(needed, c) ? batch : inner) += c;
    }
  }
  for (const char c : b.letters) {
    if (!holds(a.letters, c)) right += c;
  }
  const auto count = [&](const Term& term, const Extents& dims, const std::string& letters) {
    std::int64_t product = 1;
    for (const char c : letters) product *= extent_of(at, dims, term.letters, c);
    return product;
  };
  const std::int64_t many = count(a, da, batch), rows = count(a, da, left), columns = count(b, db, right),
                     depth = count(a, da, inner);
  const Value x = at.net().reshape(ordered(at, a, batch + left + inner), {many, rows, depth});
  const Value y = at.net().reshape(ordered(at, b, batch + inner + right), {many, depth, columns});
  const Value z = at.net().matmul(x, y);
  Extents dims;
  for (const char c : batch + left) dims.push_back(extent_of(at, da, a.letters, c));
  for (const char c : right) dims.push_back(extent_of(at, db, b.letters, c));
  if (dims.empty()) dims = {1};
  return {at.net().reshape(z, dims), batch + left + right};
}

void einsum(Importer& at) {
  const Equation equation = parse(at);
  std::vector<Term> terms;
  for (std::size_t i = 0; i < equation.inputs.size(); ++i)
    terms.push_back(without_repeats(at, {at.real_value(i), equation.inputs[i]}));
  const auto needed_behind = [&](std::size_t i) {
    std::string needed = equation.output;
    for (std::size_t k = i; k < terms.size(); ++k) needed += terms[k].letters;
    return needed;
  };
  Term result = terms[0];
  for (std::size_t i = 1; i < terms.size(); ++i) {
    result = reduced_to(at, result, needed_behind(i));
    const Term next = reduced_to(at, terms[i], needed_behind(i + 1) + result.letters);
    result = joined(at, result, next, needed_behind(i + 1));
  }
  result = reduced_to(at, result, equation.output);
  for (const char c : equation.output) {
    if (!holds(result.letters, c)) at.fail("has an output with an axis that no input has");
  }
  const Value y = ordered(at, result, equation.output);
  at.set(0, y, equation.output.empty() ? Extents{} : at.net().shape(y), at.type(0));
}

}  // namespace

const OpTable& einsum_ops() {
  static const OpTable table{{"Einsum", einsum}};
  return table;
}

}  // namespace penstock::onnx
