#include "kernels/native/simd/gradient_tile.h"

/// The gradient of a convolution's weights. A tile of it, 4 input channels by up to 3 blocks of output
/// channels, stays in registers while a chunk of positions goes by; the chunk's dy stays in the first-level
/// cache while all input channels and taps go by. Each element is summed by one thread in one order: the
/// result does not depend on their number.
namespace penstock::kernels::native::PENSTOCK_SIMD {
namespace {

/// Runs shorter than this are walked position by position from a list: a loop so short costs more than the
/// list.
constexpr std::int64_t kShortRun = 16;

/// Positions of a chunk: some images, or some rows of one.
struct Chunk {
  std::int64_t image = 0;
  std::int64_t images = 1;
  std::int64_t row = 0;
  std::int64_t rows = 0;
};

/// `count` positions in a row that a tap sees inside the image, as offsets from the chunk's first image.
using Run = PositionRun;

std::int64_t rows_of(const ConvShape& shape) {
  return shape.out[0] * shape.out[1];
}

/// The runs that a tap sees of a chunk.
std::int64_t find_runs(const ConvShape& shape, const Chunk& chunk, std::int64_t tap, Run* runs) {
  const std::int64_t in_image = shape.in_blocks * shape.in_positions() * kLanes;
  const std::int64_t out_image = shape.out_blocks * shape.out_positions() * kLanes;
  const std::int64_t k[3] = {tap / (shape.kernel[1] * shape.kernel[2]),
                             tap / shape.kernel[2] % shape.kernel[1], tap % shape.kernel[2]};
  std::int64_t shift[3];
  for (int a = 0; a < 3; ++a) shift[a] = k[a] * shape.dilation[a] - shape.padding[a];
  // Columns whose tap falls inside the row.
  const std::int64_t stride = shape.stride[2];
  const std::int64_t first = shift[2] >= 0 ? 0 : (-shift[2] + stride - 1) / stride;
  const std::int64_t room = shape.in[2] - shift[2];
  const std::int64_t last = room <= 0 ? 0 : smaller(shape.out[2], (room + stride - 1) / stride);
  std::int64_t count = 0;
  if (first >= last) return 0;
  for (std::int64_t i = 0; i < chunk.images; ++i) {
    for (std::int64_t row = chunk.row; row < chunk.row + chunk.rows; ++row) {
      const std::int64_t d = row / shape.out[1] * shape.stride[0] + shift[0];
      const std::int64_t h = row % shape.out[1] * shape.stride[1] + shift[1];
      if (d < 0 || d >= shape.in[0] || h < 0 || h >= shape.in[1]) continue;
      const std::int64_t x =
          i * in_image + ((d * shape.in[1] + h) * shape.in[2] + first * stride + shift[2]) * kLanes;
      const std::int64_t dy = i * out_image + (row * shape.out[2] + first) * kLanes;
      const std::int64_t length = last - first;
      if (count > 0) {
        Run& before = runs[count - 1];
        if (before.x + before.count * stride * kLanes == x && before.dy + before.count * kLanes == dy) {
          before.count += length;
          continue;
        }
      }
      runs[count++] = {x, dy, length};
    }
  }
  return count;
}

/// Cuts runs into single positions if they are short.
std::int64_t cut_short_runs(const ConvShape& shape, Run* runs, std::int64_t count) {
  std::int64_t positions = 0;
  for (std::int64_t i = 0; i < count; ++i) positions += runs[i].count;
  if (count <= 1 || positions >= count * kShortRun) return count;
  std::int64_t to = positions;
  for (std::int64_t i = count; i-- > 0;) {
    const Run run = runs[i];
    for (std::int64_t p = run.count; p-- > 0;) {
      runs[--to] = {run.x + p * shape.stride[2] * kLanes, run.dy + p * kLanes, 1};
    }
  }
  return positions;
}

void sum_chunk(const ConvGradient& conv, const Chunk& chunk, Share items, Run* runs, bool first) {
  const ConvShape& shape = conv.shape;
  const std::int64_t in_block = shape.in_positions() * kLanes;
  const std::int64_t out_block = shape.out_positions() * kLanes;
  const std::int64_t taps = shape.taps();
  const std::int64_t longest = chunk_positions(shape);
  std::int64_t* counts = reinterpret_cast<std::int64_t*>(runs + taps * longest);
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    Run* mine = runs + tap * longest;
    counts[tap] = cut_short_runs(shape, mine, find_runs(shape, chunk, tap, mine));
  }
  GradientTile tile{};
  tile.x_step = shape.stride[2] * kLanes;
  tile.dy_block = out_block;
  tile.dw_block = shape.in_blocks * taps * kLanes * kLanes;
  tile.first = first;
  for (std::int64_t item = items.begin; item < items.end; ++item) {
    const Share blocks = group_blocks(shape.out_blocks, item / shape.in_blocks);
    const std::int64_t in = item % shape.in_blocks;
    tile.dy = conv.dy + (chunk.image * shape.out_blocks + blocks.begin) * out_block;
    const float* x = conv.x + (chunk.image * shape.in_blocks + in) * in_block;
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      tile.runs = runs + tap * longest;
      tile.run_count = counts[tap];
      for (std::int64_t lane = 0; lane < kLanes; lane += kTileInputs) {
        tile.x = x + lane;
        tile.dw =
            conv.dw + ((blocks.begin * shape.in_blocks + in) * taps + tap) * kLanes * kLanes + lane * kLanes;
        sum_tile(tile, blocks.end - blocks.begin);
      }
    }
  }
}

}  // namespace

void conv_gradient(const ConvGradient& conv) {
  const ConvShape& shape = conv.shape;
  const std::int64_t rows = rows_of(shape);
  const std::int64_t target = ConvGradient::kChunkPositions;
  const std::int64_t images_at_once = larger(1, target / shape.out_positions());
  const std::int64_t rows_at_once = smaller(rows, larger(1, target / shape.out[2]));
  const std::int64_t items = group_count(shape.out_blocks) * shape.in_blocks;
#pragma omp parallel num_threads(smaller(conv.threads, omp_get_max_threads()))
  {
    const Share share = my_share(items);
    auto* runs =
        reinterpret_cast<Run*>(static_cast<char*>(conv.scratch) + omp_get_thread_num() * conv.scratch_bytes);
    bool first = true;
    for (std::int64_t image = 0; image < shape.images; image += images_at_once) {
      const std::int64_t images = smaller(images_at_once, shape.images - image);
      for (std::int64_t row = 0; row < rows; row += rows_at_once) {
        sum_chunk(conv, {image, images, row, smaller(rows_at_once, rows - row)}, share, runs, first);
        first = false;
      }
    }
  }
}

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
