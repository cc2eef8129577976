#pragma once

// Marks what a program that links libquern may use. In the shared library everything else is
// hidden: internals can change without breaking anyone, and meet no symbol of the host's.
#define QUERN_API __attribute__((visibility("default")))
