"""The first example of README.md is examples/softmax.cpp, and prints what README.md says."""

import os
import re
import subprocess
import sys

SOURCE = os.environ["QUERN_SOURCE_DIR"]
EXAMPLE = os.path.join(os.path.dirname(os.environ["QUERN"]), "examples", "example_softmax")


def read(path):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as file:
        return file.read()


readme = read("README.md")
code = re.search(r"```cpp\n(.*?)```\n\n```\n(.*?)```", readme, re.S)
if code.group(1) != read("examples/softmax.cpp"):
    sys.exit("README.md and examples/softmax.cpp differ")
printed = subprocess.run([EXAMPLE], stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout
if printed != code.group(2):
    sys.exit(f"the example prints {printed!r}, README.md says {code.group(2)!r}")
links = re.findall(r"\]\(([^)]+)\)", readme)
missing = [link for link in links if not os.path.exists(os.path.join(SOURCE, link))]
sys.exit(f"README.md links to what is not there: {missing}" if missing else 0)
