#include <cstdio>

#include <quern/quern.h>

int main() {
  using namespace quern;
  KernelBuilder k;
  Array x = k.input(Scalar::Float32, {2, 4});
  Array e = exp2((x - x.max(1)) * 1.4426950408889634);
  k.output(e / e.sum(1));
  Ast softmax = k.build();

  auto device = open_device("cpu");
  Kernel kernel = compile(softmax, device);
  Buffer in = Buffer::copy_of(device, std::vector<float>{1, 2, 3, 4, 0, 0, 0, 0});
  Buffer out(device, Scalar::Float32, 8);
  kernel.launch({out, in});
  std::printf("%s:", kernel.program().name.c_str());
  for (float p : out.to_vector<float>()) std::printf(" %.3f", p);
  std::printf("\n");
}
