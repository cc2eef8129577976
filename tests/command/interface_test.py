"""The command's interface: output, exit codes, and that bad input has no other effect."""

import json
import os
import re
import struct
import subprocess
import sys
import tempfile

QUERN = os.environ["QUERN"]
KERNELS = os.path.join(os.environ["QUERN_SOURCE_DIR"], "examples", "kernels")
INFERENCE = os.path.join(KERNELS, "inference.jsonl")
ARRAYS = os.path.join(KERNELS, "arrays.jsonl")
failures = 0


def quern(*arguments, stdout=subprocess.PIPE, env=None):
    return subprocess.run([QUERN, *arguments], stdout=stdout, stderr=subprocess.PIPE, text=True,
                          timeout=300, env=env)


def check(condition, what):
    global failures
    if not condition:
        failures += 1
        print("FAILED:", what)


def refused(arguments, *parts):
    """Bad input: exit code 2, nothing on stdout, and a message with these parts."""
    result = quern(*arguments)
    what = f"{' '.join(arguments)}: {result.returncode}, {result.stdout!r}, {result.stderr!r}"
    check(result.returncode == 2, what)
    check(result.stdout == "", what)
    for part in parts:
        check(part in result.stderr, f"{part!r} is not in: {what}")


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)
    return path


def read_npy(path):
    with open(path, "rb") as file:
        data = file.read()
    length = struct.unpack("<H", data[8:10])[0]
    return data[10:10 + length].decode().strip(), data[10 + length:]


def write_npy(path, descr, shape, data, order="False"):
    header = f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as out:
        out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)


def devices():
    result = quern("devices")
    check(result.returncode == 0 and "cpu" in result.stdout and "interpreter" in result.stdout, result)
    listed = json.loads(quern("devices", "--json").stdout)
    check({d["name"] for d in listed} >= {"cpu", "interpreter"}, listed)
    check(all({"name", "available", "description", "reason"} <= set(d) for d in listed), listed)


def verify():
    for opts in (["--opts", "none"], ["--opts", "default"], ["--opts", "random", "--rounds", "2", "--seed", "5"]):
        result = quern("verify", INFERENCE, ARRAYS, *opts)
        check(result.returncode == 0, result)
        check(re.fullmatch(r"\d+ passed, 0 failed, 0 skipped", result.stdout.splitlines()[-1]), result)
        check(result.stderr == "", "quiet in a pipe: " + result.stderr)
    out = json.loads(quern("verify", ARRAYS, "--json", "--jobs", "2").stdout)
    check(list(out) == ["passed", "failed", "skipped", "seconds", "compile_ms", "failures"], out)
    check(out["passed"] == 3 and list(out["compile_ms"]) == ["median", "p90"], out)
    check(json.loads(quern("verify", ARRAYS, "--json", "--sample", "1/2").stdout)["passed"] == 1, "sample")
    check(json.loads(quern("verify", INFERENCE, "--json", "--max-flops", "0").stdout)["skipped"] == 8, "flops")
    check(json.loads(quern("verify", INFERENCE, "--json", "--max-bytes", "0").stdout)["skipped"] == 8, "bytes")
    interpreted = quern("verify", ARRAYS, "--device", "interpreter")
    check(interpreted.stdout.endswith("3 passed, 0 failed, 0 skipped\n"), interpreted)


def verify_fails(folder):
    """A wrong expectation is a failure with id, opts and both values."""
    with open(ARRAYS, encoding="utf-8") as file:
        kernel = json.loads(file.readline())
    kernel["expect"][0]["value"][3] += 1
    path = write(folder, "wrong.jsonl", json.dumps(kernel) + "\n")
    result = quern("verify", path)
    check(result.returncode == 1 and result.stdout.endswith("0 passed, 1 failed, 0 skipped\n"), result)
    check(kernel["id"] in result.stdout and "expected" in result.stdout, result)
    failed = json.loads(quern("verify", path, "--json").stdout)["failures"]
    check(list(failed[0]) == ["id", "opts", "error"] and failed[0]["id"] == kernel["id"], failed)


def verify_without_expectation(folder):
    with open(ARRAYS, encoding="utf-8") as file:
        kernels = [json.loads(line) for line in file]
    for kernel in kernels:
        kernel["expect"] = []
    path = write(folder, "unexpected.jsonl", "\n".join(map(json.dumps, kernels)) + "\n")
    result = quern("verify", path)
    check(result.stdout.endswith("3 passed, 0 failed, 0 skipped\n"), result)


def verify_refuses(folder):
    refused(["verify"], "file")
    refused(["verify", os.path.join(folder, "none.jsonl")], "none.jsonl", "No such file")
    refused(["verify", folder], folder)
    refused(["verify", write(folder, "empty.jsonl", "\n")], "no kernels")
    refused(["verify", ARRAYS, "--device", "tpu"], "'tpu'", "cpu, interpreter")
    refused(["verify", ARRAYS, "--opts", "best"], "best")
    refused(["verify", ARRAYS, "--sample", "3/2"], "--sample")
    refused(["verify", ARRAYS, "--rounds", "0"], "rounds")
    refused(["verify", ARRAYS, "--max-flops", "nan"], "max-flops")
    refused(["verify", ARRAYS, "--seed", "-1"], "seed")
    with open(ARRAYS, encoding="utf-8") as file:
        lines = file.read().splitlines()
    cut = write(folder, "cut.jsonl", lines[0] + "\n" + lines[1][:100] + "\n")
    refused(["verify", cut], f"{cut}:2:", "not JSON")
    unknown = write(folder, "unknown.jsonl", lines[0].replace('"NEG"', '"NOT"') + "\n")
    refused(["verify", unknown], f"{unknown}:1:", "kernel minimum_and_maximum", "node 1 (NOT)")


def run(folder):
    out = os.path.join(folder, "out.npy")
    result = quern("run", ARRAYS, "--kernel", "transpose", "--output", "0=" + out)
    check(result.returncode == 0 and "GFLOP/s" in result.stdout and "GB/s" in result.stdout, result)
    header, data = read_npy(out)
    check("(100, 60)" in header and "<f4" in header and len(data) == 24000, header)

    # The transpose of what was given.
    given = os.path.join(folder, "given.npy")
    values = struct.pack("<6000f", *range(6000))
    write_npy(given, "<f4", "(60, 100)", values)
    result = quern("run", ARRAYS, "--kernel", "transpose", "--input", "1=" + given, "--output", "0=" + out,
                   "--opts", "none", "--repeat", "3", "--json")
    check(result.returncode == 0, result)
    timing = json.loads(result.stdout)
    check(timing["id"] == "transpose" and timing["repeat"] == 3 and timing["opts"] == "", timing)
    floats = struct.unpack("<6000f", read_npy(out)[1])
    check(floats[1] == 100.0 and floats[60] == 1.0 and floats[-1] == 5999.0, floats[:3])

    result = quern("run", INFERENCE, "--kernel", "attention_scores", "--var", "length=64", "--opts", "UPCAST:0:2")
    check(result.returncode == 0 and "UPCAST:0:2" in result.stdout, result)


def run_refuses(folder):
    base = ["run", ARRAYS, "--kernel", "transpose"]
    given = os.path.join(folder, "given.npy")
    refused(["run", ARRAYS], "choose one by id", "transpose")
    refused(["run", ARRAYS, "--kernel", "nothing"], "'nothing'", "transpose")
    refused(base + ["--opts", "UPCAST:9:4"], "UPCAST:9:4")
    refused(base + ["--opts", "UPCAST:0:7"], "UPCAST:0:7")
    refused(base + ["--opts", "SPEEDUP:0:7"], "unknown op 'SPEEDUP'")
    refused(base + ["--opts", "UPCAST:x:7"], "'x' is no number")
    refused(base + ["--input", "1"], "expected BUFFER=FILE.npy")
    refused(base + ["--input", "7=" + given], "there is no buffer 7")
    refused(base + ["--input", "1=" + given, "--input", "1=" + given], "given twice")
    refused(base + ["--var", "n=3"], "no variable 'n'")
    refused(base + ["--output", "1=" + given], "there is no buffer 1")
    refused(base + ["--output", "0=" + os.path.join(folder, "none", "out.npy")], "No such file")
    refused(base + ["--repeat", "0"], "repeat")
    symbolic = ["run", INFERENCE, "--kernel", "attention_scores"]
    refused(symbolic + ["--var", "length=65"], "'length' is 65", "from 1 to 64")
    refused(symbolic + ["--var", "length=many"], "no integer")
    refused(symbolic + ["--var", "length"], "expected NAME=VALUE")
    with open(ARRAYS, encoding="utf-8") as file:
        huge = json.loads(file.read().splitlines()[2])
    huge["buffers"][1]["size"] = 1 << 50
    refused(["run", write(folder, "huge.jsonl", json.dumps(huge) + "\n")], "cannot allocate 4503599627370496 bytes")
    values = bytes(24000)
    for descr, shape, data, order, part in (("<f8", "(3000,)", values, "False", "float64"),
                                            ("<f4", "(5999,)", values[4:], "False", "expected 6000 elements"),
                                            ("<f4", "(60, 100)", values, "True", "Fortran"),
                                            ("<f4", "(60, 100)", values[8:], "False", "bytes")):
        write_npy(given, descr, shape, data, order)
        refused(base + ["--input", "1=" + given], given, part)


def show():
    softmax = ["show", INFERENCE, "--kernel", "softmax", "--opts", "none"]
    for stage, parts in (("ast", ["MAX_REDUCE float32 [64,1]", "buffer 0: float32[16384] written"]),
                         ("schedule", ["Global", "Reduce"]),
                         ("uops", ["= RANGE int32", "= END"]),
                         ("graph", ["digraph uops", "subgraph cluster_"]),
                         ("source", ["define void @r_"]),
                         ("asm", ["ret"])):
        result = quern(*softmax, "--stage", stage)
        check(result.returncode == 0, result)
        for part in parts:
            check(part in result.stdout, f"{part!r} is not in stage {stage}: {result.stdout[:300]}")
    generic = quern(*softmax, "--stage", "source", "--target", "cpu:generic").stdout
    check("x86-64-v4" in generic, generic[:300])
    check(quern(*softmax, "--stage", "source", "--target", "interpreter").stdout.startswith("%0 ="), "uops")
    again = quern(*softmax, "--stage", "source", "--target", "cpu:generic", env={"X": "y" * 1000})
    check(again.stdout == generic, "the same source in every process")
    refused(softmax, "--stage")
    refused(softmax + ["--stage", "ptx"], "ptx")
    refused(softmax + ["--stage", "uops", "--target", "tpu"], "'tpu'")
    refused(softmax + ["--stage", "uops", "--target", "cpu:pentium9"], "'pentium9'")
    vectors = quern(*softmax[:-2], "--stage", "asm", "--target", "cpu:haswell").stdout
    check("ymm" in vectors and "zmm" not in vectors, "haswell has AVX2")
    refused(softmax + ["--stage", "asm", "--target", "interpreter"], "assembly")


def is_sanitized():
    with open(os.path.join(os.path.dirname(QUERN), "CMakeCache.txt"), encoding="utf-8") as cache:
        return re.search("^QUERN_SANITIZE:STRING=.", cache.read(), re.M) is not None


def limited_file_size(folder):
    """As on a full disk: an error, the old file stays, nothing else is left."""
    if is_sanitized():
        return  # sanitizers write files of their own
    out = write(folder, "limited.npy", "old")
    command = f'ulimit -f 1; "{QUERN}" run "{ARRAYS}" --kernel transpose --output 0="{out}"'
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=300)
    check(result.returncode == 2 and "File too large" in result.stderr, result)
    with open(out, encoding="utf-8") as file:
        check(file.read() == "old", "the old file has gone")


def unusable_stdout():
    with open("/dev/full", "w", encoding="utf-8") as full:
        result = quern("show", INFERENCE, "--kernel", "softmax", "--stage", "ast", stdout=full)
    check(result.returncode == 2 and "stdout" in result.stderr, result)


def usage():
    check(quern("--help").returncode == 0, "--help")
    check("verify" in quern("--help").stdout, "--help lists the subcommands")
    refused([])
    refused(["compile"])
    refused(["verify", ARRAYS, "--fast"], "--fast")


def main():
    with tempfile.TemporaryDirectory() as folder:
        devices()
        verify()
        verify_fails(folder)
        verify_without_expectation(folder)
        verify_refuses(folder)
        run(folder)
        run_refuses(folder)
        show()
        limited_file_size(folder)
        unusable_stdout()
        usage()
        left = sorted(os.listdir(folder))
        check(not [name for name in left if name.endswith(".tmp")], left)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
