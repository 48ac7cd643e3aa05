// Einsum: sums of products over labelled axes, as products of matrices.
//
//   "bij,bjk->bik": labels in both operands and in the result are batches (b), in both and gone afterwards are summed
//   (j), the others are rows (i) and columns (k):
//
//   a: [batches…, rows…, summed…]  →  [batches…, R, S]  ┐
//   b: [batches…, summed…, columns…] → [batches…, S, C] ┴ matmul → [batches…, R, C] → [batches…, rows…, columns…]
//
// Three and more operands are multiplied from the left. A label that an operand has twice is its diagonal.
#include "import/compose/einsum.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "import/compose/composer.h"

namespace polyphase {
namespace {

using Sizes = Composer::Sizes;
using Integers = Composer::Integers;

// Letters by their code; the axes of an ellipsis, counted from its end, from `of_ellipsis` on.
using Labels = std::vector<int>;
constexpr int of_ellipsis = 256;

struct Term {
  Value* value = nullptr;
  Labels labels;
};

Error broken_sum(std::string message) {
  return Error{ErrorCode::invalid_model, std::move(message),
               "Write the sum as numpy.einsum takes it, and export again."};
}

bool contains(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

std::string spelled(int label) {
  return label >= of_ellipsis ? "an axis of '...'" : "'" + std::string(1, static_cast<char>(label)) + "'";
}

struct Equation {
  std::vector<std::string> operands;
  std::optional<std::string> result;
};

Result<Equation> read_equation(const std::string& text) {
  const auto wrong = [&](const std::string& what) {
    return broken_sum("equation is '" + text.substr(0, 80) + "': " + what);
  };
  std::string plain;
  std::copy_if(text.begin(), text.end(), std::back_inserter(plain), [](char c) { return c != ' '; });
  Equation out;
  if (const std::size_t arrow = plain.find("->"); arrow != std::string::npos) {
    out.result = plain.substr(arrow + 2);
    plain.resize(arrow);
  }
  std::size_t begin = 0;
  while (begin <= plain.size()) {
    const std::size_t end = std::min(plain.find(',', begin), plain.size());
    out.operands.push_back(plain.substr(begin, end - begin));
    begin = end + 1;
  }
  std::vector<std::string> terms = out.operands;
  if (out.result.has_value()) terms.push_back(*out.result);
  for (const std::string& term : terms) {
    std::string letters = term;
    if (const std::size_t dots = letters.find("..."); dots != std::string::npos) letters.erase(dots, 3);
    const bool legal = std::all_of(letters.begin(), letters.end(),
                                   [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); });
    if (!legal) return wrong("a term may have letters and one '...', found '" + term.substr(0, 40) + "'.");
  }
  return out;
}

// A term's labels, the ellipsis standing for `dots` axes.
Labels labels_of(const std::string& term, int dots) {
  Labels out;
  for (std::size_t i = 0; i < term.size(); ++i) {
    if (term[i] != '.') {
      out.push_back(static_cast<unsigned char>(term[i]));
      continue;
    }
    for (int k = dots; k-- > 0;) out.push_back(of_ellipsis + k);
    i += 2;
  }
  return out;
}

class Einsum {
 public:
  Einsum(Emitter& node, const Values& operands) : operands_(operands), make_(node) {}

  Result<Value*> run(const Equation& equation) {
    TRY_VOID(read_terms(equation));
    TRY(const Labels wanted, read_result(equation));
    find_sizes();
    for (Term& term : terms_) simplify(term);
    while (make_.ok() && terms_.size() > 1) {
      Term left = terms_[0];
      Term right = terms_[1];
      terms_.erase(terms_.begin());
      terms_[0] = {};
      std::set<int> needed(wanted.begin(), wanted.end());
      for (std::size_t i = 1; i < terms_.size(); ++i) needed.insert(terms_[i].labels.begin(), terms_[i].labels.end());
      terms_[0] = multiply(std::move(left), std::move(right), needed);
    }
    Term& last = terms_[0];
    sum_unneeded(last, std::set<int>(wanted.begin(), wanted.end()));
    Integers order;
    Sizes sizes;
    for (const int label : wanted) {
      const auto at = std::find(last.labels.begin(), last.labels.end(), label);
      if (at != last.labels.end()) order.push_back(at - last.labels.begin());
      sizes.push_back(at != last.labels.end() ? size_of_[label] : Dim(1));
    }
    return make_.result(make_.reshape(make_.transpose(last.value, std::move(order)), std::move(sizes)));
  }

 private:
  Result<void> read_terms(const Equation& equation) {
    if (equation.operands.size() != operands_.size()) {
      return broken_sum("the equation has " + std::to_string(equation.operands.size()) + " terms for " +
                        std::to_string(operands_.size()) + " operands.");
    }
    for (std::size_t i = 0; i < equation.operands.size(); ++i) {
      const std::string& term = equation.operands[i];
      const bool has_dots = term.find('.') != std::string::npos;
      const int dots = operands_[i]->type.shape.rank() - static_cast<int>(term.size()) + (has_dots ? 3 : 0);
      if (dots < 0 || (dots > 0 && !has_dots)) {
        return broken_sum("the term '" + term.substr(0, 40) + "' does not fit operand " + std::to_string(i) + ", " +
                          operands_[i]->type.text() + ": it needs a letter per axis, or '...'.");
      }
      if (has_dots) most_dots_ = std::max(most_dots_, dots);
      terms_.push_back({operands_[i], labels_of(term, dots)});
    }
    return {};
  }

  // Without '->': the axes of '...', then the letters that occur once, by the alphabet.
  Result<Labels> read_result(const Equation& equation) const {
    std::map<int, int> occurrences;
    for (const Term& term : terms_) {
      for (const int label : term.labels) ++occurrences[label];
    }
    if (!equation.result.has_value()) {
      Labels out = labels_of("...", most_dots_);
      for (const auto& [label, count] : occurrences) {
        if (label < of_ellipsis && count == 1) out.push_back(label);
      }
      return out;
    }
    const Labels out = labels_of(*equation.result, most_dots_);
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (occurrences.count(out[i]) == 0)
        return broken_sum("the result has the label " + spelled(out[i]) + ", which no operand has.");
      if (std::find(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(i), out[i]) !=
          out.begin() + static_cast<std::ptrdiff_t>(i))
        return broken_sum("the result has the label " + spelled(out[i]) + " twice.");
    }
    return out;
  }

  // A label's size is that of the first axis of it that is not 1; the others must be equal or 1.
  void find_sizes() {
    for (const Term& term : terms_) {
      for (std::size_t i = 0; i < term.labels.size(); ++i) {
        const Dim size = make_.size(term.value, static_cast<int>(i));
        Dim& known = size_of_.emplace(term.labels[i], size).first->second;
        if (known == 1) known = size;
        if (size == 1) continue;
        make_.require_equal(known, size,
                            "Einsum: the axes of " + spelled(term.labels[i]) + " must be equal or 1, found " +
                                known.text() + " and " + size.text() + ".");
      }
    }
  }

  // Drops axes of size 1 that other operands have larger, and takes diagonals.
  void simplify(Term& term) {
    Labels labels;
    Sizes sizes;
    for (std::size_t i = 0; i < term.labels.size(); ++i) {
      const Dim size = make_.size(term.value, static_cast<int>(i));
      if (size == 1 && !(size_of_[term.labels[i]] == 1)) continue;
      labels.push_back(term.labels[i]);
      sizes.push_back(size);
    }
    term.value = make_.reshape(term.value, std::move(sizes));
    term.labels = std::move(labels);
    for (std::size_t i = 0; make_.ok() && i < term.labels.size(); ++i) {
      for (std::size_t k = i + 1; k < term.labels.size(); ++k) {
        if (term.labels[k] != term.labels[i]) continue;
        take_diagonal(term, i, k);
        k = i;
      }
    }
  }

  // Element (i, i) of [n, n] is element i·(n + 1) of the list: with n more elements behind, column 0 of [n, n + 1].
  void take_diagonal(Term& term, std::size_t first, std::size_t second) {
    Integers order;
    Labels labels;
    Sizes sizes;
    for (std::size_t i = 0; i < term.labels.size(); ++i) {
      if (i == first || i == second) continue;
      order.push_back(static_cast<std::int64_t>(i));
      labels.push_back(term.labels[i]);
      sizes.push_back(make_.size(term.value, static_cast<int>(i)));
    }
    order.push_back(static_cast<std::int64_t>(first));
    order.push_back(static_cast<std::int64_t>(second));
    const Dim n = size_of_[term.labels[first]];
    labels.push_back(term.labels[first]);
    const auto with = [&](std::initializer_list<Dim> last) {
      Sizes out = sizes;
      out.insert(out.end(), last);
      return out;
    };
    Value* flat = make_.reshape(make_.transpose(term.value, std::move(order)), with({n * n}));
    Value* longer = make_.reshape(make_.pad(flat, -1, 0, n), with({n, n + 1}));
    term.value = make_.reshape(make_.slice(longer, -1, 0, 1), with({n}));
    term.labels = std::move(labels);
  }

  void sum_unneeded(Term& term, const std::set<int>& needed) {
    Integers axes;
    Labels kept;
    for (std::size_t i = 0; i < term.labels.size(); ++i) {
      if (needed.count(term.labels[i]) == 0) {
        axes.push_back(static_cast<std::int64_t>(i));
      } else {
        kept.push_back(term.labels[i]);
      }
    }
    term.value = make_.reduce("reduce_sum", term.value, std::move(axes), false);
    term.labels = std::move(kept);
  }

  Dim count(const Labels& labels) const {
    Dim out(1);
    for (const int label : labels) out = out * size_of_.at(label);
    return out;
  }

  // The term's axes as [each of first…, all of second, all of third].
  Value* arranged(const Term& term, const Labels& first, const Labels& second, const Labels& third) {
    Integers order;
    Sizes sizes;
    for (const Labels* group : {&first, &second, &third}) {
      for (const int label : *group) {
        order.push_back(std::find(term.labels.begin(), term.labels.end(), label) - term.labels.begin());
        if (group == &first) sizes.push_back(size_of_[label]);
      }
    }
    sizes.push_back(count(second));
    sizes.push_back(count(third));
    return make_.reshape(make_.transpose(term.value, std::move(order)), std::move(sizes));
  }

  Term multiply(Term left, Term right, const std::set<int>& needed) {
    std::set<int> beside_left = needed;
    beside_left.insert(right.labels.begin(), right.labels.end());
    std::set<int> beside_right = needed;
    beside_right.insert(left.labels.begin(), left.labels.end());
    sum_unneeded(left, beside_left);
    sum_unneeded(right, beside_right);
    Labels batches;
    Labels summed;
    Labels rows;
    Labels columns;
    for (const int label : left.labels) {
      const bool shared = contains(right.labels, label);
      (!shared ? rows : (needed.count(label) != 0 ? batches : summed)).push_back(label);
    }
    for (const int label : right.labels) {
      if (!contains(left.labels, label)) columns.push_back(label);
    }
    Value* a = arranged(left, batches, rows, summed);
    Value* b = arranged(right, batches, summed, columns);
    Term out;
    out.value = summed.empty() ? make_.mul(a, b) : make_.matmul(a, b);
    Sizes sizes;
    for (const Labels* group : {&batches, &rows, &columns}) {
      for (const int label : *group) {
        out.labels.push_back(label);
        sizes.push_back(size_of_[label]);
      }
    }
    out.value = make_.reshape(out.value, std::move(sizes));
    return out;
  }

  const Values& operands_;
  Composer make_;
  std::vector<Term> terms_;
  std::map<int, Dim> size_of_;
  int most_dots_ = 0;
};

}  // namespace

Result<Value*> einsum(Emitter& node, const std::string& equation, const Values& operands) {
  TRY(const Equation read, read_equation(equation));
  return Einsum(node, operands).run(read);
}

}  // namespace polyphase
