#pragma once

#include <span>
#include <string>
#include <string_view>

#include "quern/codegen/uop/linear.h"
#include "quern/codegen/uop/uop.h"

namespace quern {

// The text form of uops, which is also the program text for the interpreter. One uop a line:
//
//   %0 = DEFINE_GLOBAL float32 buffer=0 elements=64 written
//   %1 = CONST int32 4
//   %2 = RANGE int32 (%1) #0 axis=1
//     %3 = LOAD float32x16 (%0, %2)
//   %4 = END (%2)
//
// Grammar; blanks separate tokens where needed, and `//` starts a comment:
//
//   line     = [label "="] OP [dtype] ["(" [label {"," label}] ")"] {field}
//   label    = "%" letters, digits and _ ; stands for one uop, defined above its uses
//   dtype    = a scalar type's name ["x" lanes]; left out for void
//   field    = "#" integer           the op's `arg` where it has no name
//            | name "=" value        a named arg, e.g. RANGE's axis, SPECIAL's kind=local dim=0
//            | name                  a flag that is set: `written`
//            | "[" integers "]"      the op's `args` where they have no names
//            | literal               the value of a CONST
//            | "[" literals "]"      the values of a VCONST
//   literal  = integer | true | false | float | inf | -inf | nan | -nan
//            | 0x and 16 hex digits  the lane bits (eval.h) of a NaN with another payload
//
// The names are in text_fields.cpp. A named arg that may be left out is 0 then. What `args` and
// `arg` mean stands in uop.h.
//
// The printed form is canonical: values are numbered by their place in the list, scopes are
// indented by two blanks, and a float is the shortest number that reads back bit for bit. Parsing
// what was printed gives uops that are structurally equal and print the same.
std::string print_uops(const LinearUOps& uops);
// The same for a graph that is not linearized: what `sink` depends on, in order of id.
std::string print_graph(UOp sink);

// Reads a list. What comes back is well-formed: sources have the types that their op wants, every
// op is one of linearized uops, scopes nest, and a value is used only while the scope that it was
// computed in is open (an ASSIGN: while its accumulator's is). It need not be in bounds. Throws
// CompileError with line and column for any other text.
LinearUOps parse_uops(std::string_view text, Graph& graph);
// Reads a graph, in which every op may occur, and returns its last uop.
UOp parse_graph(std::string_view text, Graph& graph);

// A list as a Graphviz graph: ops coloured by class, scopes as boxes.
std::string graph_dot(const LinearUOps& uops);

}  // namespace quern
