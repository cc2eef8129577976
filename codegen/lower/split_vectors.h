#pragma once

#include "quern/codegen/simplify/simplify.h"
#include "quern/codegen/target.h"

namespace quern {

// Splits Alu ops and reduces into pieces of at most the target's vector width (single lanes where
// it has no vector Alu). A kernel's upcast axes make values of, say, 64 floats, which a compiler
// would also split, but not along the lines that loads, stores and broadcasts run along: here a GEP
// or VECTORIZE costs nothing as long as it stays on the pieces' borders.
UOp split_vectors(Simplifier& s, UOp sink, const Target& target);

}  // namespace quern
