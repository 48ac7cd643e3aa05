// A catalogue for passes that ask kernels: convolutions in f32 that read either order and write channels-last, with a
// leaky_relu, a reflecting pad or a cast of a narrow image before them and any endings. They cannot run; passes only
// ask. And the operators of the tests.
#pragma once

#include "kernel/catalogue.h"

namespace polyphase {

const Registry& registry();  // the built-in operators
const Catalogue& plain_catalogue(const Registry& registry);

}  // namespace polyphase
