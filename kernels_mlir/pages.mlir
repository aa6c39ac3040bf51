// Where a position of a sequence is in a cache: in a row of the sequence's own, or in pages that all sequences take from one
// pool. `tables` (B, L) then has the pages of each sequence, in the order of its positions.

include "common.mlir"

!ints = !cuda_tile.tensor_view<?x?xi32, strides=[?,1]>
!table_part = !cuda_tile.partition_view<tile=(1x1), !ints>

fragment @own_row(%b: !int, %place: !int) -> (!int, !int) { yield %b, %place : !int, !int }

// The page of sequence %b that has place %place, and where in it that is: places are positions, or tiles of them, and a page
// has %count of them
fragment @page_of(%tables: !table_part, %b: !int, %place: !int, %count: !int) -> (!int, !int) {
  %which = divi %place, %count signed : !int
  %at = remi %place, %count signed : !int
  %tile, %read = load_view_tko weak %tables[%b, %which] optimization_hints = <default = {allow_tma = false}>
      : !table_part, !int -> !int_1x1, token
  %page = reshape %tile : !int_1x1 -> !int
  yield %page, %at : !int, !int
}
