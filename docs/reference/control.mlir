// Control flow and the grid
// Loops, branches, which block this is, promises, and prints.

entry @assert() {
  %n = iota : tile<4xi32>
  %limit = constant <i32: 4> : tile<4xi32>
  %small = cmpi less_than %n, %limit, signed : tile<4xi32> -> tile<4xi1>
  assert %small, "an index is too large" : tile<4xi1>
  print_tko "all are small\0A" -> token
}

entry @assume() {
  %n = constant <i32: 64> : tile<i32>
  %rows = assume div_by<16>, %n : tile<i32>
  %few = assume bounded<0, 1024>, %rows : tile<i32>
  print_tko "%d\0A", %few : tile<i32> -> token
}

entry @break() {
  %zero = constant <i32: 0> : tile<i32>
  %one = constant <i32: 1> : tile<i32>
  %ten = constant <i32: 10> : tile<i32>
  %found = loop iter_values(%n = %zero) : tile<i32> -> tile<i32> {
    %square = muli %n, %n : tile<i32>
    %large = cmpi greater_than %square, %ten, signed : tile<i32> -> tile<i1>
    if %large {
      break %n : tile<i32>
    }
    %next = addi %n, %one : tile<i32>
    continue %next : tile<i32>
  }
  print_tko "%d\0A", %found : tile<i32> -> token
}

entry @continue() {
  %zero = constant <i32: 0> : tile<i32>
  %one = constant <i32: 1> : tile<i32>
  %two = constant <i32: 2> : tile<i32>
  %six = constant <i32: 6> : tile<i32>
  %sum = for %i in (%zero to %six, step %one) : tile<i32> iter_values(%so_far = %zero) -> (tile<i32>) {
    %rest = remi %i, %two signed : tile<i32>
    %odd = cmpi equal %rest, %one, signed : tile<i32> -> tile<i1>
    if %odd {
      continue %so_far : tile<i32>
    }
    %more = addi %so_far, %i : tile<i32>
    continue %more : tile<i32>
  }
  print_tko "0 + 2 + 4 = %d\0A", %sum : tile<i32> -> token
}

entry @for() {
  %zero = constant <i32: 0> : tile<i32>
  %one = constant <i32: 1> : tile<i32>
  %five = constant <i32: 5> : tile<i32>
  %sum = for %i in (%zero to %five, step %one) : tile<i32> iter_values(%so_far = %zero) -> (tile<i32>) {
    %more = addi %so_far, %i : tile<i32>
    continue %more : tile<i32>
  }
  print_tko "%d\0A", %sum : tile<i32> -> token
}

// grid: 2,2
entry @get_num_tile_blocks() {
  %x, %y, %z = get_num_tile_blocks : tile<i32>
  print_tko "%d x %d x %d\0A", %x, %y, %z : tile<i32>, tile<i32>, tile<i32> -> token
}

// grid: 2,2
entry @get_tile_block_id() {
  %x, %y, %z = get_tile_block_id : tile<i32>
  print_tko "%d, %d, %d\0A", %x, %y, %z : tile<i32>, tile<i32>, tile<i32> -> token
}

entry @if() {
  %n = constant <i32: -3> : tile<i32>
  %zero = constant <i32: 0> : tile<i32>
  %negative = cmpi less_than %n, %zero, signed : tile<i32> -> tile<i1>
  %size = if %negative -> (tile<i32>) {
    %turned = negi %n : tile<i32>
    yield %turned : tile<i32>
  } else {
    yield %n : tile<i32>
  }
  print_tko "%d\0A", %size : tile<i32> -> token
}

entry @loop() {
  %one = constant <i32: 1> : tile<i32>
  %hundred = constant <i32: 100> : tile<i32>
  %power = loop iter_values(%n = %one) : tile<i32> -> tile<i32> {
    %large = cmpi greater_than %n, %hundred, signed : tile<i32> -> tile<i1>
    if %large {
      break %n : tile<i32>
    }
    %next = addi %n, %n : tile<i32>
    continue %next : tile<i32>
  }
  print_tko "%d\0A", %power : tile<i32> -> token
}

entry @print_tko() {
  %x = constant <f32: [0.5, 1.5]> : tile<2xf32>
  %n = constant <i32: 255> : tile<i32>
  print_tko "x = %.2f, n = %d = 0x%x, 100 %%\0A", %x, %n, %n : tile<2xf32>, tile<i32>, tile<i32> -> token
}

// grid: 3
entry @return() {
  %x, %y, %z = get_tile_block_id : tile<i32>
  %one = constant <i32: 1> : tile<i32>
  %middle = cmpi equal %x, %one, signed : tile<i32> -> tile<i1>
  if %middle {
    return
  }
  print_tko "block %d\0A", %x : tile<i32> -> token
  return
}

entry @yield() {
  %x = constant <i32: [3, 1, 4, 1]> : tile<4xi32>
  %largest = reduce %x dim=0 identities=[-2147483648 : i32] : tile<4xi32> -> tile<i32>
  (%a: tile<i32>, %b: tile<i32>) {
    %larger = maxi %a, %b signed : tile<i32>
    yield %larger : tile<i32>
  }
  print_tko "%d\0A", %largest : tile<i32> -> token
}
