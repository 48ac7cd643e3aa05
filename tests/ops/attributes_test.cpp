// Attributes: every kind survives its text, wrong ones are refused, defaults are filled in.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "ops/registry.h"

namespace polyphase {
namespace {

const std::vector<AttributeSpec>& specs() {
  static const std::vector<AttributeSpec> list = {
      {"flag", AttributeKind::boolean, "", Attribute(false)},
      {"count", AttributeKind::integer, ""},
      {"factor", AttributeKind::real, ""},
      {"mode", AttributeKind::word, "", std::nullopt, {"a", "b"}},
      {"to", AttributeKind::dtype, ""},
      {"ints", AttributeKind::integers, ""},
      {"reals", AttributeKind::reals, ""},
      {"size", AttributeKind::dim, ""},
      {"sizes", AttributeKind::dims, ""},
      {"value", AttributeKind::tensor, ""},
  };
  return list;
}

Attributes survives(const Attributes& attributes) {
  const std::string text = print_attributes(attributes);
  auto again = parse_attributes(text, specs());
  EXPECT_TRUE(again.ok()) << text << "\n" << (again.ok() ? "" : again.error().text());
  if (!again.ok()) return {};
  EXPECT_TRUE(*again == attributes) << text;
  EXPECT_EQ(print_attributes(*again), text);
  return *again;
}

TEST(AttributesText, EveryKindSurvives) {
  const Dim h = Dim::symbol("H");
  const std::vector<std::int64_t> sizes{2, 2};
  const std::vector<double> numbers{0.1, -0.0, INFINITY, 1e-45};
  Attributes all;
  all.set("flag", true);
  all.set("count", std::int64_t{INT64_MIN});
  all.set("factor", 1.0 / 3);
  all.set("mode", std::string("a \"b\"\n\\"));
  all.set("to", DType::bf16);
  all.set("ints", std::vector<std::int64_t>{1, -2, INT64_MAX});
  all.set("reals", std::vector<double>{0.5, -INFINITY, 1e300});
  all.set("size", floor_div(h + 1, Dim(2)) - h * h);
  all.set("sizes", std::vector<Dim>{h, max(h, Dim(3)), Dim(-1)});
  all.set("value", Tensor::from_values(DType::f32, sizes, numbers));
  survives(all);
  survives({{"ints", std::vector<std::int64_t>{}}, {"sizes", std::vector<Dim>{}}});
}

TEST(AttributesText, TensorsOfEveryDTypeSurvive) {
  std::mt19937_64 random(3);
  for (int i = 0; i < dtype_count; ++i) {
    const auto dtype = static_cast<DType>(i);
    const Tensor tensor = Tensor::allocate(dtype, std::vector<std::int64_t>{3, 5}).value();
    for (std::size_t k = 0; k < 15; ++k) {
      std::byte* element = tensor.view().data + k * size_bytes(dtype);
      const auto bits = static_cast<std::int64_t>(random());
      if (is_float(dtype)) {
        store_double(element, dtype, std::ldexp(static_cast<double>(bits), -40));
      } else {
        store_integer(element, dtype, bits);
      }
    }
    survives({{"value", tensor}});
  }
}

TEST(AttributesText, RefusesWithThePlace) {
  const auto refusal = [](std::string_view text) {
    const auto parsed = parse_attributes(text, specs());
    return parsed.ok() ? std::string("taken") : parsed.error().message;
  };
  EXPECT_EQ(refusal("count=1 nonsense=2"),
            "line 1, column 17: expected a known attribute instead of 'nonsense', found '=2'.");
  EXPECT_EQ(refusal("count=1 count=2"), "line 1, column 14: expected 'count' only once, found '=2'.");
  EXPECT_EQ(refusal("count=x"), "line 1, column 7: expected a 64-bit integer, found 'x'.");
  EXPECT_EQ(refusal("flag=1"), "line 1, column 6: expected true or false, found '1'.");
  for (const char* bad : {"value=f32[2]{1}", "value=f32[2]{1, 2, 3}", "value=f33[1]{1}", "value=f32[-1]{}",
                          "value=f32[9999999999]{1}", "ints=[1,", "size=H +", "mode=a", "to=float", "factor=one"}) {
    EXPECT_NE(refusal(bad), "taken") << bad;
  }
}

TEST(Attributes, CompleteChecksAndFillsIn) {
  const Registry registry = Registry::built_in();
  const OpDef& gelu = registry.at("gelu");
  EXPECT_EQ(gelu.complete({})->get<std::string>("approximate"), "none");
  EXPECT_EQ(gelu.complete({{"approximate", std::string("fast")}}).error().message,
            "attribute 'approximate' of operator gelu is 'fast'; it must be one of: none, tanh.");
  EXPECT_EQ(gelu.complete({{"alpha", 1.0}}).error().message, "operator gelu has no attribute 'alpha'.");
  EXPECT_EQ(registry.at("concat").complete({}).error().message, "operator concat needs the attribute 'axis'.");
  EXPECT_EQ(registry.at("concat").complete({{"axis", 1.0}}).error().message,
            "attribute 'axis' of operator concat must be of kind integer, found real.");
}

TEST(Attributes, DimsEvaluateAndSubstitute) {
  const Dim h = Dim::symbol("H");
  const Attributes attributes{{"shape", std::vector<Dim>{h * 2, Dim(3)}}};
  EXPECT_EQ(attributes.evaluate({}), std::nullopt);
  EXPECT_EQ(integers_of(attributes.evaluate({{"H", 5}})->get<std::vector<Dim>>("shape")),
            (std::vector<std::int64_t>{10, 3}));
  EXPECT_EQ(attributes.substitute({{"H", Dim(7)}}).get<std::vector<Dim>>("shape")[0], Dim(14));
}

// What every definition must have, so that text, documentation and tests can follow from it.
TEST(Registry, DefinitionsAreComplete) {
  const Registry registry = Registry::built_in();
  EXPECT_GE(registry.all().size(), 100U);
  for (const auto& [name, op] : registry.all()) {
    EXPECT_FALSE(op->doc.empty()) << name;
    EXPECT_NE(op->infer, nullptr) << name;
    EXPECT_EQ(op->reference == nullptr, op->region_count > 0) << name;
    EXPECT_FALSE(op->outputs.empty()) << name;
    for (const OperandSpec& operand : op->inputs) EXPECT_FALSE(operand.doc.empty()) << name << " " << operand.name;
    for (const AttributeSpec& spec : op->attributes) {
      EXPECT_FALSE(spec.doc.empty()) << name << " " << spec.name;
      if (!spec.default_value.has_value()) continue;
      EXPECT_EQ(kind_of(*spec.default_value), spec.kind) << name << " " << spec.name;
    }
  }
}

TEST(Registry, NamesAreTakenOnce) {
  Registry registry = Registry::built_in();
  EXPECT_EQ(registry.add(std::make_shared<const OpDef>(registry.at("add"))).error().message,
            "an operator named 'add' exists already.");
  EXPECT_EQ(registry.find("nothing"), nullptr);
}

}  // namespace
}  // namespace polyphase
