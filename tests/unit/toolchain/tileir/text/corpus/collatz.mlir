// form: a loop that gives another number of values than it carries
entry @collatz(%numbers: tile<ptr<i32>>, %steps: tile<ptr<i32>>) {
  %x, %y, %z = get_tile_block_id : tile<i32>
  %zero = constant <i32: 0> : tile<i32>
  %one = constant <i32: 1> : tile<i32>
  %two = constant <i32: 2> : tile<i32>
  %three = constant <i32: 3> : tile<i32>
  %from = offset %numbers, %x : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
  %start, %read = load_ptr_tko weak %from : tile<ptr<i32>> -> tile<i32>, token
  // CHECK: %count = loop iter_values(%n = %start, %taken = %zero) : tile<i32>, tile<i32> -> tile<i32> {
  %count = loop iter_values(%n = %start, %taken = %zero) : tile<i32>, tile<i32> -> tile<i32> {
    %reached = cmpi less_than_or_equal %n, %one, signed : tile<i32> -> tile<i1>
    // CHECK: if %reached {
    // CHECK-NEXT: break %taken : tile<i32>
    if %reached {
      break %taken : tile<i32>
    }
    %rest = remi %n, %two signed : tile<i32>
    %odd = cmpi equal %rest, %one, signed : tile<i32> -> tile<i1>
    %next = if %odd -> (tile<i32>) {
      %triple = muli %n, %three : tile<i32>
      %up = addi %triple, %one : tile<i32>
      yield %up : tile<i32>
    } else {
      %half = divi %n, %two signed : tile<i32>
      yield %half : tile<i32>
    }
    %more = addi %taken, %one : tile<i32>
    // CHECK: continue %next, %more : tile<i32>, tile<i32>
    continue %next, %more : tile<i32>, tile<i32>
  }
  %to = offset %steps, %x : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
  %written = store_ptr_tko weak %to, %count : tile<ptr<i32>>, tile<i32> -> token
  return
}
