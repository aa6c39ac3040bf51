// form: loops with and without results, names for several results
entry @k(%n: tile<i32>, %x: tile<f32>, %c: tile<i1>) {
  // CHECK: loop {
  loop {
    if %c {
      break
    }
  }
  // CHECK: %a = loop : tile<i32> {
  %a = loop : tile<i32> {
    break %n : tile<i32>
  }
  // CHECK: %b, %d = loop iter_values(%i = %n) : tile<i32> -> tile<f32>, tile<i32> {
  %b, %d = loop iter_values(%i = %n) : tile<i32> -> tile<f32>, tile<i32> {
    if %c {
      continue %i : tile<i32>
    }
    break %x, %i : tile<f32>, tile<i32>
  }
  // CHECK: %0, %1 = for unsigned %j in (%n to %n, step %n) : tile<i32> iter_values(%y = %x, %z = %n) -> (tile<f32>, tile<i32>) {
  %both:2 = for unsigned %j in (%n to %n, step %n) : tile<i32> iter_values(%y = %x, %z = %n) -> (tile<f32>, tile<i32>) {
    continue %y, %j : tile<f32>, tile<i32>
  }
  // CHECK: addi %1, %n : tile<i32>
  %e = addi %both#1, %n : tile<i32>
  // CHECK: %f = addf %0, %0 : tile<f32>
  %f = addf %both, %both#0 : tile<f32>
  // CHECK: %g = addf %f, %f : tile<f32>
  %g = addf %f, %f#0 : tile<f32>
  return
}
