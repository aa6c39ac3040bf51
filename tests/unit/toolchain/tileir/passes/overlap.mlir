// The launch after may begin at once; the kernel waits before its first access to memory, and its accesses come after.
entry @k(%x: tile<ptr<f32>>) {
  %zero = constant <i32: 0> : tile<i32>
  %value, %token = load_ptr_tko weak %x : tile<ptr<f32>> -> tile<f32>, token
  return
}
// becomes
entry @k(%x: tile<ptr<f32>>) {
  %0 = gdc_launch_dependents_tko -> token
  %zero = constant <i32: 0> : tile<i32>
  %1 = gdc_wait_tko -> token
  %value, %token = load_ptr_tko weak %x token = %1 : tile<ptr<f32>> -> tile<f32>, token
  return
}
// -----
// error: a kernel may not end before it has waited
entry @k(%c: tile<i1>, %x: tile<ptr<f32>>) {
  if %c {
    return
  }
  %ready = gdc_wait_tko -> token
  return
}
