// Ordering and atomics
// Tokens say which access comes after which; atomic accesses may meet others at the same place. `gdc` is for launches
// that [overlap](../overlap.md).

global @counter <i32: [0, 0, 0, 0]> : tile<4xi32>

global @sums <f32: 0.0> : tile<4xf32>

entry @atomic_cas_tko() {
  %place = get_global @counter : tile<ptr<i32>>
  %free = constant <i32: 0> : tile<i32>
  %taken = constant <i32: 1> : tile<i32>
  %before, %done = atomic_cas_tko acquire device %place, %free, %taken : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
  %again, %done2 = atomic_cas_tko acquire device %place, %free, %taken token = %done : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
  print_tko "%d, then %d\0A", %before, %again : tile<i32>, tile<i32> -> token
}

// grid: 3
entry @atomic_red_view_tko() {
  %start = get_global @sums : tile<ptr<f32>>
  %array = make_tensor_view %start, shape = [4], strides = [1] : tensor_view<4xf32, strides=[1]>
  %tiles = make_partition_view %array : partition_view<tile=(4), tensor_view<4xf32, strides=[1]>>
  %zero = constant <i32: 0> : tile<i32>
  %ones = constant <f32: 1.0> : tile<4xf32>
  %added = atomic_red_view_tko relaxed device %tiles[%zero], addf, %ones : tile<4xf32>, partition_view<tile=(4), tensor_view<4xf32, strides=[1]>>, tile<i32> -> token
  %nothing = constant <f32: 0.0> : tile<f32>
  %now, %read = atomic_rmw_tko relaxed device %start, addf, %nothing token = %added : tile<ptr<f32>>, tile<f32> -> tile<f32>, token
  print_tko "%g\0A", %now : tile<f32> -> token
}

// grid: 3
entry @atomic_rmw_tko() {
  %x, %y, %z = get_tile_block_id : tile<i32>
  %place = get_global @counter : tile<ptr<i32>>
  %one = constant <i32: 1> : tile<i32>
  %ticket, %done = atomic_rmw_tko relaxed device %place, add, %one : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
  print_tko "block %d has ticket %d\0A", %x, %ticket : tile<i32>, tile<i32> -> token
}

entry @gdc_launch_dependents_tko() {
  %allowed = gdc_launch_dependents_tko -> token
  print_tko "the next launch may begin\0A" token = %allowed -> token
}

entry @gdc_wait_tko() {
  %waited = gdc_wait_tko -> token
  %start = get_global @counter : tile<ptr<i32>>
  %n, %read = load_ptr_tko weak %start token = %waited : tile<ptr<i32>> -> tile<i32>, token
  print_tko "%d\0A", %n : tile<i32> -> token
}

entry @join_tokens() {
  %start = alloca num_elem = 2, alignment = 16 : tile<ptr<i32>>
  %one = constant <i32: 1> : tile<i32>
  %next = offset %start, %one : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
  %first = store_ptr_tko weak %start, %one : tile<ptr<i32>>, tile<i32> -> token
  %second = store_ptr_tko weak %next, %one : tile<ptr<i32>>, tile<i32> -> token
  %both = join_tokens %first, %second : token
  %n, %read = load_ptr_tko weak %next token = %both : tile<ptr<i32>> -> tile<i32>, token
  print_tko "%d\0A", %n : tile<i32> -> token
}

entry @make_token() {
  %start = make_token : token
  %said = print_tko "first\0A" token = %start -> token
  print_tko "second\0A" token = %said -> token
}

entry @memory_fence_alias_tko() {
  %floats = alloca num_elem = 1, alignment = 16 : tile<ptr<f32>>
  %words = ptr_to_ptr %floats : tile<ptr<f32>> -> tile<ptr<i32>>
  %one = constant <f32: 1.0> : tile<f32>
  %written = store_ptr_tko weak %floats, %one : tile<ptr<f32>>, tile<f32> -> token
  %fenced = memory_fence_alias_tko %written
  %bits, %read = load_ptr_tko weak %words token = %fenced : tile<ptr<i32>> -> tile<i32>, token
  print_tko "%x\0A", %bits : tile<i32> -> token
}
