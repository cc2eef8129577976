#include "quern/runtime/npy.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "quern/codegen/error.h"
#include "quern/runtime/file.h"

namespace quern {
namespace {

namespace fs = std::filesystem;

class Npy : public testing::Test {
 protected:
  Npy() {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(testing::TempDir()) / (std::string("quern_npy_") + info->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~Npy() override { fs::remove_all(folder_); }

  std::string path(const char* name) const { return (folder_ / name).string(); }

  std::string write(std::string_view header, std::string_view data, char version = 1) const {
    std::string name = path("given.npy");
    std::ofstream out(name, std::ios::binary);
    out << "\x93NUMPY" << version << '\0' << static_cast<char>(header.size() & 0xff)
        << static_cast<char>(header.size() >> 8);
    if (version > 1) out << '\0' << '\0';
    out << header << data;
    return name;
  }

  void expect_refused(const std::string& name, std::string_view part) const {
    try {
      read_npy(name);
      ADD_FAILURE() << "accepted";
    } catch (const FileError& e) {
      EXPECT_NE(std::string_view(e.what()).find(part), std::string_view::npos) << e.what();
      EXPECT_TRUE(std::string_view(e.what()).starts_with(name)) << e.what();
    }
  }

  fs::path folder_;
};

TEST_F(Npy, RoundTripsEveryType) {
  for (const char* name : {"bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64",
                           "uint64", "float16", "bfloat16", "float32", "float64"}) {
    DType dtype = *parse_dtype(name);
    std::vector<std::byte> data(6 * static_cast<size_t>(dtype.itemsize()), std::byte{1});
    for (const std::vector<int64_t>& shape :
         {std::vector<int64_t>{6}, std::vector<int64_t>{2, 3}, std::vector<int64_t>{1, 6, 1}}) {
      write_npy(path("a.npy"), dtype, shape, data);
      NpyArray array = read_npy(path("a.npy"));
      EXPECT_EQ(array.dtype, dtype);
      EXPECT_EQ(array.shape, shape);
      EXPECT_EQ(array.data, data);
      EXPECT_EQ(fs::file_size(path("a.npy")) % 64, data.size() % 64)
          << "data is not aligned to 64 bytes";
    }
  }
}

TEST_F(Npy, ScalarsAndEmptyArrays) {
  std::vector<std::byte> one(4), none;
  write_npy(path("a.npy"), Scalar::Float32, {}, one);
  EXPECT_EQ(read_npy(path("a.npy")).size(), 1);
  write_npy(path("a.npy"), Scalar::Float32, std::vector<int64_t>{3, 0}, none);
  EXPECT_EQ(read_npy(path("a.npy")).size(), 0);
}

TEST_F(Npy, ReadsWhatNumPyWrites) {
  std::string data(24, '\0');
  EXPECT_EQ(
      read_npy(write("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n", data))
          .size(),
      6);
  EXPECT_EQ(read_npy(write("{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }\n", data, 2))
                .size(),
            6);
  EXPECT_EQ(
      read_npy(write("{'descr': '<f4', 'fortran_order': True, 'shape': (6,), }\n", data)).size(), 6)
      << "one axis has no order";
}

TEST_F(Npy, RefusesWhatItCannotUse) {
  std::string data(24, '\0');
  auto header = [](std::string_view descr, std::string_view order, std::string_view shape) {
    return fmt::format("{{'descr': {}, 'fortran_order': {}, 'shape': {}, }}\n", descr, order,
                       shape);
  };
  expect_refused(path("missing.npy"), "No such file");
  expect_refused(write(header("'<f4'", "True", "(2, 3)"), data), "Fortran order");
  expect_refused(write(header("'>f4'", "False", "(2, 3)"), data), "big endian");
  expect_refused(write(header("'<c8'", "False", "(3,)"), data), "'<c8'");
  expect_refused(write(header("[('a', '<f4')]", "False", "(6,)"), data), "structured");
  expect_refused(write(header("'<f4'", "False", "(2, 4)"), data), "does not have 24 bytes");
  expect_refused(write(header("'<f4'", "False", "(2, 2)"), data), "does not have 24 bytes");
  expect_refused(
      write(header("'<f4'", "False", "(4611686018427387904, 4611686018427387904)"), data), "bytes");
  expect_refused(write(header("'<f4'", "False", "(-6,)"), data), "no size");
  expect_refused(write(header("'<f4'", "Maybe", "(6,)"), data), "neither True nor False");
  expect_refused(write("{'descr': '<f4'}\n", data), "must be there");
  expect_refused(write("{'descr", data), "without an end");
  expect_refused(write("", ""), "expected '{'");
  expect_refused(write(header("'<f4'", "False", "(6,)"), data, 9), "version 9");
}

TEST_F(Npy, AnyPrefixIsRefused) {
  std::vector<std::byte> data(24);
  write_npy(path("a.npy"), Scalar::Float32, std::vector<int64_t>{6}, data);
  std::string whole = read_file(path("a.npy"));
  for (size_t n = 0; n < whole.size(); ++n) {
    write_file(path("b.npy"), {std::as_bytes(std::span(whole).first(n))});
    EXPECT_THROW(read_npy(path("b.npy")), FileError) << n;
  }
}

TEST_F(Npy, AFailedWriteLeavesTheOldFile) {
  std::vector<std::byte> data(24);
  write_npy(path("a.npy"), Scalar::Float32, std::vector<int64_t>{6}, data);
  std::string before = read_file(path("a.npy"));
  EXPECT_THROW(write_npy(path("none/a.npy"), Scalar::Float32, std::vector<int64_t>{6}, data),
               FileError);
  EXPECT_THROW(write_npy("/dev/full", Scalar::Float32, std::vector<int64_t>{6}, data), FileError);
  EXPECT_EQ(read_file(path("a.npy")), before);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

}  // namespace
}  // namespace quern
