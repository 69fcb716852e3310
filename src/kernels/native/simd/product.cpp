#include "kernels/native/simd/pack.h"
#include "kernels/native/simd/product_tile.h"
#include "kernels/native/simd/text_loops.h"
#include "kernels/native/simd/threads.h"

namespace penstock::kernels::native::PENSTOCK_SIMD {
namespace {

/// Rows of a and columns of b that are packed at a time: together they stay in the last-level cache.
constexpr std::int64_t kRows = 1536;
constexpr std::int64_t kColumns = 3072;
/// Rows and columns that one thread works on at a time: a's part stays in the second-level cache.
constexpr std::int64_t kTaskRows = 96;
constexpr std::int64_t kTaskColumns = 768;

std::int64_t parts_of(std::int64_t count, std::int64_t part) {
  return (count + part - 1) / part;
}
std::int64_t rounded(std::int64_t count, std::int64_t unit) {
  return parts_of(count, unit) * unit;
}
/// Extent of even parts of `count`, whole multiples of `unit`, none above `largest` (a multiple of `unit`).
std::int64_t even_part(std::int64_t count, std::int64_t largest, std::int64_t unit) {
  return rounded(parts_of(count, parts_of(count, largest)), unit);
}

/// One part of c: rows and columns from (row, column) on, terms from `term` on.
struct Part {
  std::int64_t row, rows, column, columns, term, terms;
  float* a;
  float* b;
};

void pack_a(const Product& p, const Part& part) {
  const std::int64_t panels = parts_of(part.rows, kTileRows);
#pragma omp for schedule(static) nowait
  for (std::int64_t i = 0; i < panels; ++i) {
    const std::int64_t row = i * kTileRows;
    const std::int64_t rows = smaller(kTileRows, part.rows - row);
    // The floats behind a panel belong to the next one, maybe of another thread: the last term goes by
    // itself.
    const float* from = p.a.data + (part.row + row) * p.a.row + part.term * p.a.column;
    float* to = part.a + row * part.terms;
    pack_panel<kTileRows>(from, p.a.row, p.a.column, rows, part.terms - 1, to);
    for (std::int64_t r = 0; r < kTileRows; ++r) {
      to[(part.terms - 1) * kTileRows + r] =
          r < rows ? from[r * p.a.row + (part.terms - 1) * p.a.column] : 0.0F;
    }
  }
}

void pack_b(const Product& p, const Part& part) {
  const std::int64_t panels = parts_of(part.columns, kTileColumns);
#pragma omp for schedule(static) nowait
  for (std::int64_t j = 0; j < panels; ++j) {
    const std::int64_t column = j * kTileColumns;
    pack_panel<kTileColumns>(p.b.data + part.term * p.b.row + (part.column + column) * p.b.column, p.b.column,
                             p.b.row, smaller(kTileColumns, part.columns - column), part.terms,
                             part.b + column * part.terms);
  }
}

void multiply_task(const Product& p, const Part& part, Share rows, Share columns) {
  const bool first = part.term == 0;
  const bool last = part.term + part.terms == p.k;
  for (std::int64_t column = columns.begin; column < columns.end; column += kTileColumns) {
    const float* b = part.b + column * part.terms;
    TileEnd end;
    end.scale = p.scale;
    end.bias = first && p.bias != nullptr ? p.bias + part.column + column : nullptr;
    end.add = p.add || !first;
    end.relu = p.relu && last;
    for (std::int64_t row = rows.begin; row < rows.end; row += kTileRows) {
      F8 sums[kTileRows][2];
      float* c = p.c + (part.row + row) * p.c_row + part.column + column;
      for (int i = 0; i < kTileRows; ++i) __builtin_prefetch(c + i * p.c_row, 1);
      sum_products<true>(part.terms, part.a + row * part.terms, 1, kTileRows, b, kTileColumns, sums);
      store_tile(sums, c, p.c_row, smaller(kTileRows, part.rows - row),
                 smaller(kTileColumns, part.columns - column), end);
    }
  }
}

void multiply_part(const Product& p, const Part& part) {
  const std::int64_t row_step = even_part(part.rows, kTaskRows, kTileRows);
  const std::int64_t column_step = even_part(part.columns, kTaskColumns, kTileColumns);
  const std::int64_t row_tasks = parts_of(part.rows, row_step);
  const std::int64_t tasks = row_tasks * parts_of(part.columns, column_step);
#pragma omp for schedule(dynamic)
  for (std::int64_t task = 0; task < tasks; ++task) {
    const std::int64_t row = task % row_tasks * row_step;
    const std::int64_t column = task / row_tasks * column_step;
    multiply_task(p, part, {row, smaller(row + row_step, part.rows)},
                  {column, smaller(column + column_step, part.columns)});
  }
}

}  // namespace

std::int64_t product_floats(std::int64_t m, std::int64_t n, std::int64_t k) {
  const std::int64_t terms = smaller(k, kProductTerms);
  return terms * (rounded(smaller(m, kRows), kTileRows) + rounded(smaller(n, kColumns), kTileColumns)) + 32;
}

void product(const Product& p) {
  const std::int64_t row_step = even_part(p.m, kRows, kTileRows);
  const std::int64_t column_step = even_part(p.n, kColumns, kTileColumns);
  const std::int64_t term_step = even_part(p.k, kProductTerms, 1);
  float* b = p.scratch;
  // An even place for a, behind the largest b.
  float* a = b + rounded(smaller(term_step, p.k) * rounded(smaller(p.n, column_step), kTileColumns), 16);
#pragma omp parallel if (p.m * p.n * p.k > 65536)
  for (std::int64_t column = 0; column < p.n; column += column_step) {
    for (std::int64_t term = 0; term < p.k; term += term_step) {
      for (std::int64_t row = 0; row < p.m; row += row_step) {
        const Part part{row,  smaller(row_step, p.m - row),   column, smaller(column_step, p.n - column),
                        term, smaller(term_step, p.k - term), a,      b};
        if (row == 0) pack_b(p, part);
        pack_a(p, part);
#pragma omp barrier
        multiply_part(p, part);
      }
    }
  }
}

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
