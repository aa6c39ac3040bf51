// form: `print`, the name of print_tko in cuda-tile 13.1, without a token
entry @k(%x: tile<i32>) {
  // CHECK: print_tko "hello" -> token
  print "hello"
  // CHECK: print_tko "%d %d", %x, %x : tile<i32>, tile<i32> -> token
  print "%d %d", %x, %x : tile<i32>, tile<i32>
  return
}
