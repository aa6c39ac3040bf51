// Rows of numbers as 8-bit floats (e4m3) with a scale for each.

include "rows.mlir"

!rounded_part = !cuda_tile.partition_view<tile=(RxBC), !f8_rows>
!f8_rows = !cuda_tile.tensor_view<?x?xf8E4M3FN, strides=[?,1]>
!scales_part = !cuda_tile.partition_view<tile=(R), !scales>
!scales = !cuda_tile.tensor_view<?xf32, strides=[1]>
!rounded = !cuda_tile.tile<RxBCxf8E4M3FN>

// scales = the largest magnitude / 448, at least the smallest normal f32; out = x / scales
//
// One block makes R rows, in steps of BC columns: first their largest magnitude, then the quotients.
kernel @quantize_rows op = quantize_rows {
  %x_tiles = make_partition_view %x_view : !in_part
  %out_tiles = make_partition_view %out_view : !rounded_part
  %scales_tiles = make_partition_view %scales_view : !scales_part
  %m, %unused_y, %unused_z = get_tile_block_id : !int
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %BC = constant <i32: BC> : !int
  %steps = divi %C, %BC signed rounding<positive_inf> : !int
  %nothing = constant <f32: 0.0> : !stat
  %maxima = for %n in (%zero to %steps, step %one) : !int iter_values(%before = %nothing) -> (!stat) {
    %tile, %read = load_view_tko weak %x_tiles[%m, %n] : !in_part, !int -> !rows, token
    %value = ftof %tile : !rows -> !f32
    %magnitude = absf %value : !f32
    %largest = reduce %magnitude dim=1 identities=[0.0 : f32] : !f32 -> !stat
    (%a: !real, %b: !real) {
      %larger = maxf %a, %b propagate_nan : !real
      yield %larger : !real
    }
    %next = maxf %before, %largest propagate_nan : !stat
    continue %next : !stat
  }
  %range = constant <f32: 448.0> : !stat
  %least = constant <f32: 0x00800000> : !stat
  %quotient = divf %maxima, %range : !stat
  %scale = maxf %quotient, %least propagate_nan : !stat
  %scale_stored = store_view_tko weak %scale, %scales_tiles[%m] : !stat, !scales_part, !int -> token
  %scale_1 = reshape %scale : !stat -> !stat_1
  %scales = broadcast %scale_1 : !stat_1 -> !f32
  for %n in (%zero to %steps, step %one) : !int {
    %tile, %read = load_view_tko weak %x_tiles[%m, %n] : !in_part, !int -> !rows, token
    %value = ftof %tile : !rows -> !f32
    %scaled = divf %value, %scales : !f32
    %rounded = ftof %scaled : !f32 -> !rounded
    %stored = store_view_tko weak %rounded, %out_tiles[%m, %n] : !rounded, !rounded_part, !int -> token
    continue
  }
  return
}
