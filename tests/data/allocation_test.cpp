#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <iterator>
#include <new>

#include "base/text_file.h"
#include "data/checkpoint_file.h"
#include "data/dataset.h"
#include "data/files.h"
#include "data/images.h"
#include "data/safetensors.h"
#include "support/files/failing_new.h"
#include "support/files/faulty_files.h"

namespace penstock {
namespace {

using testing::FailingNew;
using testing::FaultyFiles;
using testing::TempFolder;

/// Runs `work` with each of its allocations failing in turn: it throws std::bad_alloc (or reports the failure
/// as an error of its own) and leaves no file open. How many there were.
int sweep_allocations(const std::function<void()>& work) {
  for (int at = 0;; ++at) {
    FaultyFiles watched;
    const FilesReplaced replaced(watched);
    bool threw = false;
    try {
      const FailingNew failing(at);
      work();
    } catch (const std::bad_alloc&) {
      threw = true;
    } catch (const SampleError& error) {
      ADD_FAILURE() << "an image was skipped for lack of memory: " << error.what();
    } catch (const std::exception&) {
      threw = true;
    }
    EXPECT_EQ(watched.open_files(), 0) << "allocation " << at;
    if (!FailingNew::struck()) return at;
    EXPECT_TRUE(threw) << "allocation " << at << " failed and nobody was told";
  }
}

void read_first(const DataRequest& request) {
  const DataSplits splits = open_data(request);
  std::vector<float> image(static_cast<std::size_t>(splits.train->geometry().image_values()));
  std::vector<std::int32_t> labels(static_cast<std::size_t>(splits.train->geometry().label_values()));
  splits.train->read(0, image.data(), labels.data());
}

TEST(AllocationSweep, DataReaders) {
  const TempFolder folder;
  for (const std::string split : {"train", "t10k"}) {
    testing::write_gzip(folder / ("mnist/" + split + "-images-idx3-ubyte.gz"), testing::idx_images(3, 4, 4));
    testing::write_file(folder / ("mnist/" + split + "-labels-idx1-ubyte"), testing::idx_labels("\1\2\3"));
  }
  for (int i = 1; i <= 6; ++i) {
    const std::string name = i <= 5 ? "data_batch_" + std::to_string(i) : "test_batch";
    testing::write_file(folder / ("cifar/" + name + ".bin"), std::string(3073 * 2, '\1'));
  }
  testing::write_file(folder / "x.npy", testing::npy("<f4", "(2, 1, 2, 2)",
                                                     testing::bytes_of<float>({1, 2, 3, 4, 5, 6, 7, 8})));
  testing::write_file(folder / "y.npy", testing::npy("<i8", "(2,)", testing::bytes_of<std::int64_t>({0, 1})));
  testing::write_png(folder / "images/a/1.png", testing::flat_picture(9, 9, {1, 2, 3}), {-1, 8, true});
  testing::write_jpeg(folder / "jpegs/a/1.jpg", testing::flat_picture(9, 9, {1, 2, 3, 4}),
                      testing::JpegKind::cmyk);
  DataRequest request;
  for (const std::string& source :
       {"mnist:" + folder.path() + "/mnist", "cifar10:" + folder.path() + "/cifar",
        "npy:" + folder.path() + "/x.npy," + folder.path() + "/y.npy", "images:" + folder.path() + "/images",
        "images:" + folder.path() + "/jpegs"}) {
    request.source = source;
    EXPECT_GT(sweep_allocations([&] { read_first(request); }), 10) << source;
  }
}

TEST(AllocationSweep, CheckpointsAndWeights) {
  const TempFolder folder;
  const std::vector<CheckpointTensor> tensors{{"a.weight.that.has.a.long.name", {3, 2}}, {"b", {2}}};
  const std::vector<float> values(6, 1.5F);
  const auto write = [&] {
    CheckpointWriter writer(folder / "ckpt", {3, 4, {{"learning rate of this run", "0.10000000000000001"}}},
                            tensors, 2);
    writer.append(values.data());
    writer.append(values.data());
    writer.commit();
  };
  write();
  const auto read = [&] {
    const CheckpointReader reader = CheckpointReader::open(folder / "ckpt");
    std::vector<float> got(6);
    for (const std::string& name : reader.names()) reader.read(*reader.find(name), got.data());
  };
  EXPECT_GT(sweep_allocations(read), 10);
  EXPECT_GT(sweep_allocations(write), 10);
  // Whatever failed, what is there is whole, and nothing else is.
  read();
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder / "ckpt"), {}), 1);
  EXPECT_GT(sweep_allocations([&] { penstock::write_file(folder / "text", "text"); }), 3);
  EXPECT_GT(sweep_allocations([&] { penstock::read_file(folder / "text"); }), 1);
}

}  // namespace
}  // namespace penstock
