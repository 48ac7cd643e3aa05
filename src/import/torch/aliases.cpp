// Overloads that are other names of overloads with a converter.
#include "import/torch/converter.h"

namespace polyphase {

std::vector<AtenAlias> aten_aliases() {
  return {
      {"absolute(Tensor self) -> Tensor", "abs", true},
      {"arccos(Tensor self) -> Tensor", "acos", true},
      {"arccosh(Tensor self) -> Tensor", "acosh", true},
      {"arcsin(Tensor self) -> Tensor", "asin", true},
      {"arcsinh(Tensor self) -> Tensor", "asinh", true},
      {"arctan(Tensor self) -> Tensor", "atan", true},
      {"arctan2(Tensor self, Tensor other) -> Tensor", "atan2", true},
      {"arctanh(Tensor self) -> Tensor", "atanh", true},
      {"clip(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor", "clamp", true},
      {"clip.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor", "clamp.Tensor", true},
      {"concatenate(Tensor[] tensors, int dim=0) -> Tensor", "cat"},
      {"divide.Scalar(Tensor self, Scalar other) -> Tensor", "div.Scalar", true},
      {"divide.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor", "div.Scalar_mode", true},
      {"divide.Tensor(Tensor self, Tensor other) -> Tensor", "div.Tensor", true},
      {"divide.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor", "div.Tensor_mode", true},
      {"fix(Tensor self) -> Tensor", "trunc", true},
      {"greater.Scalar(Tensor self, Scalar other) -> Tensor", "gt.Scalar"},
      {"greater.Tensor(Tensor self, Tensor other) -> Tensor", "gt.Tensor"},
      {"greater_equal.Scalar(Tensor self, Scalar other) -> Tensor", "ge.Scalar"},
      {"greater_equal.Tensor(Tensor self, Tensor other) -> Tensor", "ge.Tensor"},
      {"less.Scalar(Tensor self, Scalar other) -> Tensor", "lt.Scalar"},
      {"less.Tensor(Tensor self, Tensor other) -> Tensor", "lt.Tensor"},
      {"less_equal.Scalar(Tensor self, Scalar other) -> Tensor", "le.Scalar"},
      {"less_equal.Tensor(Tensor self, Tensor other) -> Tensor", "le.Tensor"},
      {"moveaxis.int(Tensor(a) self, int source, int destination) -> Tensor(a)", "movedim.int"},
      {"moveaxis.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)", "movedim.intlist"},
      {"multiply.Scalar(Tensor self, Scalar other) -> Tensor", "mul.Scalar", true},
      {"multiply.Tensor(Tensor self, Tensor other) -> Tensor", "mul.Tensor", true},
      {"negative(Tensor self) -> Tensor", "neg", true},
      {"not_equal.Scalar(Tensor self, Scalar other) -> Tensor", "ne.Scalar"},
      {"not_equal.Tensor(Tensor self, Tensor other) -> Tensor", "ne.Tensor"},
      {"sign(Tensor self) -> Tensor", "sgn", true},
      {"special_erf(Tensor self) -> Tensor", "erf"},
      {"special_exp2(Tensor self) -> Tensor", "exp2"},
      {"special_expit(Tensor self) -> Tensor", "sigmoid"},
      {"special_expm1(Tensor self) -> Tensor", "expm1"},
      {"special_log1p(Tensor self) -> Tensor", "log1p"},
      {"special_log_softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", "log_softmax.int"},
      {"special_logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", "logsumexp"},
      {"special_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", "softmax.int"},
      {"subtract.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", "sub.Scalar", true},
      {"subtract.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", "sub.Tensor", true},
      {"true_divide.Scalar(Tensor self, Scalar other) -> Tensor", "div.Scalar", true},
      {"true_divide.Tensor(Tensor self, Tensor other) -> Tensor", "div.Tensor", true},
  };
}

}  // namespace polyphase
