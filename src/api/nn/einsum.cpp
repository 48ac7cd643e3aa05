// einsum as products of matrices: operands are contracted one after the other, from the left.
#include <algorithm>
#include <map>

#include "api/nn/write.h"

namespace polyphase::api::nn::functional {
namespace {

// A tensor whose axes have letters.
struct Lettered {
  std::string word;
  NetworkTensor x;
};

bool has(const std::string& word, char letter) { return word.find(letter) != std::string::npos; }

bool has_twice(std::string word) {
  std::sort(word.begin(), word.end());
  return std::adjacent_find(word.begin(), word.end()) != word.end();
}

template <typename Keep>
std::string letters_of(const std::string& word, const Keep& keep) {
  std::string out;
  std::copy_if(word.begin(), word.end(), std::back_inserter(out), keep);
  return out;
}

// Axes whose letters are not among the wanted are summed.
Result<Lettered> summed_to(Network& network, Lettered from, const std::string& wanted) {
  std::vector<std::int64_t> gone;
  for (std::size_t i = 0; i < from.word.size(); ++i) {
    if (!has(wanted, from.word[i])) gone.push_back(static_cast<std::int64_t>(i));
  }
  if (gone.empty()) return from;
  TRY(from.x, network.reduce_sum(from.x, {.axes = gone, .keep = false}));
  from.word = letters_of(from.word, [&](char letter) { return has(wanted, letter); });
  return from;
}

Made in_order(Network& network, const Lettered& from, const std::string& wanted) {
  if (from.word == wanted) return from.x;
  std::vector<std::int64_t> order;
  for (const char letter : wanted) order.push_back(static_cast<std::int64_t>(from.word.find(letter)));
  return network.transpose(from.x, {.order = order});
}

using LetterSizes = std::map<char, Size>;

void note_sizes(const Lettered& from, LetterSizes& sizes) {
  const std::vector<Size> shape = from.x.shape();
  for (std::size_t i = 0; i < shape.size(); ++i) sizes[from.word[i]] = shape[i];
}

// Axes in the order of the groups' letters, each group one axis.
Made arranged(Network& network, const Lettered& given, const std::vector<std::string>& groups) {
  std::string wanted;
  for (const std::string& group : groups) wanted += group;
  TRY(const Lettered from, summed_to(network, given, wanted));
  LetterSizes sizes;
  note_sizes(from, sizes);
  TRY(const NetworkTensor x, in_order(network, from, wanted));
  std::vector<Size> shape;
  for (const std::string& group : groups) {
    Size size = 1;
    for (const char letter : group) size = size.text() == "1" ? sizes[letter] : size * sizes[letter];
    shape.push_back(size);
  }
  return network.reshape(x, {.shape = shape});
}

// `kept`: the letters that are still needed behind this product.
Result<Lettered> contract(Network& network, const Lettered& a, const Lettered& b, const std::string& kept) {
  const auto in_both = [&](char letter) { return has(a.word, letter) && has(b.word, letter); };
  const std::string batch = letters_of(a.word, [&](char letter) { return in_both(letter) && has(kept, letter); });
  const std::string summed = letters_of(a.word, [&](char letter) { return in_both(letter) && !has(kept, letter); });
  const std::string rows = letters_of(a.word, [&](char letter) { return !in_both(letter) && has(kept, letter); });
  const std::string columns = letters_of(b.word, [&](char letter) { return !in_both(letter) && has(kept, letter); });
  LetterSizes sizes;
  note_sizes(b, sizes);
  note_sizes(a, sizes);
  TRY(const NetworkTensor left, arranged(network, a, {batch, rows, summed}));
  TRY(const NetworkTensor right, arranged(network, b, {batch, summed, columns}));
  TRY(const NetworkTensor product, network.matmul(left, right));
  Lettered out{batch + rows + columns, {}};
  std::vector<Size> shape;
  for (const char letter : out.word) shape.push_back(sizes[letter]);
  TRY(out.x, network.reshape(product, {.shape = shape}));
  return out;
}

struct Equation {
  std::vector<std::string> words;
  std::string result;
};

Result<Equation> read_equation(std::string_view equation, const std::vector<NetworkTensor>& xs) {
  const std::string shown = "'" + std::string(equation.substr(0, 200)) + "'";
  std::string text = letters_of(std::string(equation), [](char letter) { return letter != ' '; });
  const std::size_t arrow = text.find("->");
  const std::string left = text.substr(0, arrow);
  Equation out{{""}, {}};
  for (const char letter : left) {
    if (letter == ',') {
      out.words.emplace_back();
    } else {
      out.words.back() += letter;
    }
  }
  if (out.words.size() != xs.size()) {
    return refused_layer(shown + " names " + std::to_string(out.words.size()) + " operands, " +
                             std::to_string(xs.size()) + " are given.",
                         "Give one word for each operand.");
  }
  std::string every;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const std::string& word = out.words[i];
    const auto is_letter = [](char one) { return (one >= 'a' && one <= 'z') || (one >= 'A' && one <= 'Z'); };
    if (!std::all_of(word.begin(), word.end(), is_letter) || has_twice(word)) {
      return refused_layer(shown + " has the word '" + word + "'.",
                           "Words are letters, each once; there is no ellipsis.");
    }
    if (static_cast<int>(word.size()) != xs[i].rank()) {
      return refused_layer("'" + word + "' of " + shown + " has " + std::to_string(word.size()) +
                               " letters, but its operand has rank " + std::to_string(xs[i].rank()) + ".",
                           "Give a letter for each axis.");
    }
    every += word;
  }
  if (arrow != std::string::npos) {
    out.result = text.substr(arrow + 2);
  } else {
    out.result = letters_of(every, [&](char letter) { return std::count(every.begin(), every.end(), letter) == 1; });
    std::sort(out.result.begin(), out.result.end());
  }
  if (std::all_of(out.result.begin(), out.result.end(), [&](char letter) { return has(every, letter); }) &&
      !has_twice(out.result))
    return out;
  return refused_layer(shown + " gives '" + out.result + "'.", "The result names letters of the operands, each once.");
}

}  // namespace

Result<NetworkTensor> einsum(std::string_view einsum_eq, const std::vector<Operand>& inputs) {
  return in_network_of(inputs, [&](Network& network) -> Made {
    std::vector<NetworkTensor> xs;
    for (const Operand& one : inputs) {
      TRY(xs.emplace_back(), tensor_of(network, one, "an input"));
    }
    TRY(const Equation equation, read_equation(einsum_eq, xs));
    Lettered all{equation.words.front(), xs.front()};
    for (std::size_t i = 1; i < xs.size(); ++i) {
      std::string kept = equation.result;
      for (std::size_t later = i + 1; later < xs.size(); ++later) kept += equation.words[later];
      TRY(all, contract(network, all, {equation.words[i], xs[i]}, kept));
    }
    TRY(all, summed_to(network, all, equation.result));
    return in_order(network, all, equation.result);
  });
}

}  // namespace polyphase::api::nn::functional
